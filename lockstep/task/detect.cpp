// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/detect.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/render.h"
#include "lockstep/task/detect_grid.h"
#include "lockstep/task/detect_score.h"
#include "lockstep/task/draw_objects.h"
#include "lockstep/task/image_encoder.h"
#include "lockstep/task/kitti_score.h"
#include "lockstep/task/objects.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using image::Box;

constexpr double kMostShift = 30.0 / 255, kMostContrast = 0.25;  // KittiBox's augmentation

void draw_augmentation(const spec::Data& data, base::Random random, image::View& view) {
  if (data.augment == spec::Augment::none) return;
  view.x.reversed = data.flip && random.chance(0.5);
  view.colour.shift = static_cast<float>(random.uniform(-kMostShift, kMostShift));
  view.colour.contrast = static_cast<float>(random.uniform(1 - kMostContrast, 1 + kMostContrast));
}

class GridEncoder final : public Encoder {
 public:
  GridEncoder(const spec::Job& job, DetectClasses classes)
      : data_(job.data),
        focus_(job.detect.focus),
        classes_(std::move(classes)),
        grid_(job.data.image_size),
        renderer_(job.data) {}

  void encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) override {
    image::View view;
    const image::ImageInfo info = renderer_.chosen(
        sample.image,
        [&](const image::ImageInfo& seen) {
          view = image::whole_view(seen.width, seen.height, data_.image_size);
          if (random) draw_augmentation(data_, *random, view);
          return view;
        },
        random ? 8 : 1, pixel_target(data_.pixels, out[0]));
    left_out_.clear();
    if (sample.members.empty()) {  // a prediction: nobody knows what is on it
      annotation_ = annotation_text(info.width, info.height);
      return clear(out, 1);
    }
    annotation_ = annotation_text(sample.members[0]);
    std::vector<Box> objects, ignored;
    const AnnotatedImage image = read_objects(sample.members[0], classes_.names);
    left_out_ = image.left_out;
    for (const Object& object : image.objects) {
      if (!object.is_seen()) continue;
      if (classes_.wants(object)) objects.push_back(show_box(view, object.inside));
      if (classes_.ignores(object)) ignored.push_back(show_box(view, object.inside));
    }
    fill_grid(grid_, focus_, objects, ignored, targets(out));
  }

  void draw(int32_t /*label*/, const base::Random& random, FieldPointers out) override {
    renderer_.noise(random, pixel_target(data_.pixels, out[0]));
    base::Random numbers = random;
    std::vector<Box> objects;
    const auto width = static_cast<double>(data_.image_size.width),
               height = static_cast<double>(data_.image_size.height);
    for (int64_t i = numbers.below(4); i >= 0; --i) {
      const double w = numbers.uniform(0.1, 0.3) * width, h = numbers.uniform(0.1, 0.5) * height;
      const double x = numbers.uniform(0, width - w), y = numbers.uniform(0, height - h);
      objects.push_back({x, y, x + w, y + h});
    }
    fill_grid(grid_, focus_, objects, {}, targets(out));
    annotation_ = annotation_text(data_.image_size.width, data_.image_size.height);
  }

  void blank(FieldPointers out) override {
    renderer_.blank(pixel_target(data_.pixels, out[0]));
    clear(out, 0);
    left_out_.clear();
    annotation_.clear();
  }
  double decode_seconds() const override { return renderer_.decode_seconds(); }
  std::string annotation() const override { return annotation_; }
  std::vector<std::string> left_out() const override { return left_out_; }

 private:
  CellTargets targets(FieldPointers out) const {
    const auto cells = static_cast<size_t>(grid_.cells());
    const auto floats = [&](size_t field, size_t count) {
      return std::span(reinterpret_cast<float*>(out[field]), count);
    };
    return {floats(1, cells), floats(2, 4 * cells), floats(3, cells)};
  }
  // No object; `mask` in every cell.
  void clear(FieldPointers out, float mask) const {
    const CellTargets cells = targets(out);
    std::fill(cells.object.begin(), cells.object.end(), 0.0F);
    std::fill(cells.box.begin(), cells.box.end(), 0.0F);
    std::fill(cells.mask.begin(), cells.mask.end(), mask);
  }

  spec::Data data_;
  double focus_;
  DetectClasses classes_;
  DetectGrid grid_;
  image::Renderer renderer_;
  std::string annotation_;
  std::vector<std::string> left_out_;
};

class Detect final : public Task {
 public:
  Detect(const spec::Job& job, std::vector<std::string> classes) : job_(job) {
    check_canvas();
    if (job.detect.protocol == spec::Protocol::kitti) check_kitti();
    if (!job.detect.classes.empty()) classes_.told = job.detect.classes.front();
    classes_.is_wanted.assign(classes.size(), false);
    for (const auto& name : classes) classes_.is_ignored.push_back(kitti_type(name) == KittiType::dont_care);
    const bool known = !classes.empty() && job.data.train != "synthetic";
    for (const auto& wanted : job.detect.classes) {
      const auto found = std::find(classes.begin(), classes.end(), wanted);
      if (found != classes.end()) {
        classes_.is_wanted[static_cast<size_t>(found - classes.begin())] = true;
        if (wanted == classes_.told) classes_.told_label = static_cast<int32_t>(found - classes.begin());
      } else if (known) {
        throw Error(Blame::user, text("detect.classes: the data have no class '", wanted, "'"),
                    base::did_you_mean(wanted, classes));
      }
    }
    classes_.names = std::move(classes);
  }

  std::vector<Field> fields() const override {
    const int64_t cells = DetectGrid(job_.data.image_size).cells();
    return {image_field(job_.data),
            {.name = "object", .shape = {cells}},
            {.name = "box", .shape = {cells, 4}},
            {.name = "mask", .shape = {cells}}};
  }
  std::vector<std::string> members() const override { return {"json"}; }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<GridEncoder>(job_, classes_); }
  Classes classes() const override { return Classes::of_objects; }
  std::vector<std::string> told_classes(const std::vector<std::string>& /*classes*/) const override {
    return {classes_.told};
  }
  int64_t num_outputs() const override { return 2; }  // of a cell: nothing, something
  std::unique_ptr<Score> score(int64_t worst) const override { return make_detect_score(job_, classes_, worst); }

  Json report_words() const override {
    const bool kitti = job_.detect.protocol == spec::Protocol::kitti;
    return base::parse_json(
        kitti ? R"({"title": "Average precision, moderate", "share": true, "higher_is_better": true, "training": "",
                    "validation": "moderate", "also": {"easy": "easy", "hard": "hard"},
                    "row": {"easy": "easy", "medium": "moderate", "hard": "hard"}})"
              : R"({"title": "Average precision, IoU 0.5", "share": true, "higher_is_better": true, "training": "",
                    "validation": "ap50", "also": {"IoU 0.5 to 0.95": "ap"},
                    "row": {"AP": "ap", "AP50": "ap50"}})",
        "report words");
  }
  NetworkWords network_words() const override {
    return {.gives = "boxes around objects of one kind", .activation = "docs/detection.md"};
  }

  // Boxes from the threshold on.
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    const Json size = base::parse_json(rows.annotations[static_cast<size_t>(i)], "the image's annotation");
    const int64_t width = size.at("width").as_int(), height = size.at("height").as_int();
    std::vector<FoundBox> found = found_boxes(rows, i, job_.data.image_size, width, height);
    std::erase_if(found, [&](const FoundBox& one) { return one.score < job_.detect.threshold; });
    return detect_record(width, height, found, classes_);
  }
  std::string line(const Json& record) const override {
    std::vector<std::string> words;
    for (const auto& object : record.at("objects").items()) words.push_back(told(object));
    return words.empty() ? "nothing found" : base::join(words, ", ");
  }
  std::vector<std::string> columns(int64_t /*top*/) const override { return {"objects", "boxes"}; }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    std::vector<std::string> words;
    for (const auto& object : record.at("objects").items()) words.push_back(told(object));
    return {text(words.size()), base::join(words, "; ")};
  }
  bool draw(const Json& record, image::Image& on) const override { return draw_objects(record, on); }

 private:
  static std::string told(const Json& object) {  // "Car 98.2 % at 10 20, 30 x 40"
    const auto& box = object.at("box").items();
    const auto pixels = [&](size_t i) { return base::fixed(box[i].as_double(), 0); };
    return text(object.at("class").as_string(), " ", base::percent(object.at("score").as_double(), 1), " at ",
                pixels(0), " ", pixels(1), ", ", pixels(2), " x ", pixels(3));
  }

  void check_canvas() const {
    const spec::ImageSize& size = job_.data.image_size;
    if (size.height % kDetectCell == 0 && size.width % kDetectCell == 0 && size.pixels() > 0) return;
    throw Error(
        Blame::user,
        text("data.image_size: ", to_text(size), " is no multiple of ", kDetectCell, ", the cell of task detect"),
        "for example [384, 1248]");
  }
  void check_kitti() const {
    if (job_.detect.classes.empty()) return;  // the job's rules tell
    const KittiType type = kitti_type(job_.detect.classes.front());
    if (type == KittiType::car || type == KittiType::pedestrian || type == KittiType::cyclist) return;
    throw Error(
        Blame::user,
        text("detect.protocol: KITTI scores Car, Pedestrian and Cyclist, not '", job_.detect.classes.front(), "'"),
        R"("protocol": "coco")");
  }

  spec::Job job_;
  DetectClasses classes_;
};

}  // namespace

std::unique_ptr<Task> make_detect(const spec::Job& job, std::vector<std::string> classes) {
  return std::make_unique<Detect>(job, std::move(classes));
}

}  // namespace lockstep::task
