// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_encoder.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/render.h"
#include "lockstep/task/instances_view.h"
#include "lockstep/task/mask_window.h"
#include "lockstep/task/objects.h"

namespace lockstep::task {
namespace {

enum Position { image_at, shown_at, boxes_at, labels_at, masks_at };

constexpr int64_t kMostDrawn = 8;         // objects of a synthetic sample
constexpr int64_t kLargestReduction = 8;  // while a JPEG is decoded, in training

struct ShownObject {
  const Object* object;
  image::Box box;  // in pixels of the network's image
};

// Those that are learnt, in their order.
std::vector<ShownObject> shown_objects(const AnnotatedImage& image, const image::View& view, int64_t slots) {
  std::vector<ShownObject> shown;
  for (const Object& object : image.objects) {
    if (object.crowd || !object.is_seen()) continue;
    const image::Box box = image::show_box(view, object.inside);
    if (box.right - box.left >= 1 && box.bottom - box.top >= 1) shown.push_back({&object, box});
  }
  if (std::ssize(shown) <= slots) return shown;
  std::vector<double> areas;
  areas.reserve(shown.size());
  for (const ShownObject& one : shown) areas.push_back(one.box.area());
  std::nth_element(areas.begin(), areas.begin() + (slots - 1), areas.end(), std::greater<>());
  const double least = areas[static_cast<size_t>(slots - 1)];
  int64_t ties = slots;  // room for those of the least area, once the larger ones have theirs
  for (const ShownObject& one : shown) ties -= one.box.area() > least;
  std::vector<ShownObject> kept;
  for (const ShownObject& one : shown) {
    if (one.box.area() > least || (one.box.area() == least && ties-- > 0)) kept.push_back(one);
  }
  return kept;
}

class InstancesEncoder final : public Encoder {
 public:
  InstancesEncoder(const spec::Job& job, std::vector<std::string> classes)
      : job_(job),
        classes_(std::move(classes)),
        has_masks_(job.instances.masks),
        side_(job.instances.mask_size),
        canvases_(instances_canvases(job)),
        renderer_(job.data) {}

  void use_canvas(int64_t canvas) override { renderer_.set_canvas(canvases_[static_cast<size_t>(canvas)]); }
  std::vector<std::string> left_out() const override { return left_out_; }

  void encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) override {
    image::View view;
    const auto choose = [&](const image::ImageInfo& info) {
      return view = instances_view(info.width, info.height, job_, random);
    };
    const image::ImageInfo info =
        renderer_.chosen(sample.image, choose, random ? kLargestReduction : 1, pixels(out[image_at]));
    put_shown(static_cast<float>(view.y.num_outputs), static_cast<float>(view.x.num_outputs), out);
    clear(out);
    left_out_.clear();
    if (sample.members.empty()) {  // a prediction
      annotation_ = annotation_text(info.width, info.height);
      return;
    }
    annotation_ = annotation_text(sample.members.front());
    AnnotatedImage image = read_objects(sample.members.front(), classes_);
    if (has_masks_ && !random) drop_bad_outlines(image);  // the score reads all of them
    left_out_ = image.left_out;
    const image::View list = view_of_list(view, info, image.width, image.height);
    int64_t slot = 0;
    for (const ShownObject& one : shown_objects(image, list, job_.instances.slots)) {
      put_object(slot, one.box, one.object->label, out);
      if (has_masks_) put_mask(slot, one, image, list, out);
      ++slot;
    }
  }

  // Boxes anywhere, each mask all of its box.
  void draw(int32_t /*label*/, const base::Random& random, FieldPointers out) override {
    const spec::ImageSize& size = job_.data.image_size;
    renderer_.noise(random, pixels(out[image_at]));
    put_shown(static_cast<float>(size.height), static_cast<float>(size.width), out);
    clear(out);
    base::Random numbers = random;
    const auto interval = [&](int64_t length) {
      const double whole = static_cast<double>(length), part = whole * numbers.uniform(0.1, 0.6);
      const double begin = numbers.uniform(0, whole - part);
      return std::pair(begin, begin + part);
    };
    AnnotatedImage image{size.width, size.height};
    const auto classes = std::max<int64_t>(1, std::ssize(classes_));
    for (int64_t slot = 0; slot < std::min(kMostDrawn, job_.instances.slots); ++slot) {
      const auto [left, right] = interval(size.width);
      const auto [top, bottom] = interval(size.height);
      Object& object = image.objects.emplace_back();
      object.label = static_cast<int32_t>(numbers.below(classes));
      object.box = object.inside = {left, top, right, bottom};
      put_object(slot, object.box, object.label, out);
      if (has_masks_) std::fill_n(mask(slot, out), side_ * side_, uint8_t{1});
    }
    annotation_ = drawn_text(image);
  }

  void blank(FieldPointers out) override {
    renderer_.blank(pixels(out[image_at]));
    put_shown(0, 0, out);
    clear(out);
    left_out_.clear();
    annotation_.clear();
  }

  double decode_seconds() const override { return renderer_.decode_seconds(); }
  std::string annotation() const override { return annotation_; }

 private:
  // An outline that cannot be read costs its mask alone.
  void put_mask(int64_t slot, const ShownObject& one, const AnnotatedImage& image, const image::View& list,
                FieldPointers out) {
    try {
      fill_mask_window(*one.object, image, list, one.box, side_, mask(slot, out));
    } catch (const base::Error& wrong) {
      if (wrong.blame() != base::Blame::user) throw;
      left_out_.push_back(base::text("the outline of object ", one.object->number, ": ", wrong.what()));
      std::fill_n(mask(slot, out), side_ * side_, uint8_t{0});
    }
  }

  image::PixelTarget pixels(std::byte* out) const {
    if (job_.data.pixels == spec::Pixels::uint8) return reinterpret_cast<uint8_t*>(out);
    if (job_.data.pixels == spec::Pixels::bf16) return reinterpret_cast<uint16_t*>(out);
    return reinterpret_cast<float*>(out);
  }

  static void put_shown(float height, float width, FieldPointers out) {
    auto* shown = reinterpret_cast<float*>(out[shown_at]);
    shown[0] = height;
    shown[1] = width;
  }

  void clear(FieldPointers out) const {
    const int64_t slots = job_.instances.slots;
    std::fill_n(reinterpret_cast<float*>(out[boxes_at]), slots * 4, 0.0F);
    std::fill_n(reinterpret_cast<int64_t*>(out[labels_at]), slots, int64_t{0});
    if (has_masks_) std::fill_n(out[masks_at], slots * side_ * side_, std::byte{0});
  }

  static void put_object(int64_t slot, const image::Box& box, int32_t label, FieldPointers out) {
    float* const at = reinterpret_cast<float*>(out[boxes_at]) + slot * 4;
    at[0] = static_cast<float>(box.left);
    at[1] = static_cast<float>(box.top);
    at[2] = static_cast<float>(box.right);
    at[3] = static_cast<float>(box.bottom);
    reinterpret_cast<int64_t*>(out[labels_at])[slot] = label + 1;
  }

  uint8_t* mask(int64_t slot, FieldPointers out) const {
    return reinterpret_cast<uint8_t*>(out[masks_at]) + slot * side_ * side_;
  }

  static std::string drawn_text(const AnnotatedImage& image) {
    base::Json all = base::Json::object(), objects = base::Json::array();
    for (const Object& object : image.objects) {
      base::Json one = base::Json::object();
      one["label"] = object.label;
      one["bbox"] = base::Json::array(
          {object.box.left, object.box.top, object.box.right - object.box.left, object.box.bottom - object.box.top});
      objects.push_back(std::move(one));
    }
    all["width"] = image.width;
    all["height"] = image.height;
    all["objects"] = std::move(objects);
    return all.dump(-1);
  }

  spec::Job job_;
  std::vector<std::string> classes_;
  bool has_masks_;
  int64_t side_;  // of a mask
  std::vector<spec::ImageSize> canvases_;
  image::Renderer renderer_;
  std::vector<std::string> left_out_;
  std::string annotation_;
};

}  // namespace

std::vector<Field> instances_fields(const spec::Job& job, int64_t canvas) {
  const int64_t slots = job.instances.slots;
  spec::Data data = job.data;
  data.image_size = instances_canvases(job)[static_cast<size_t>(canvas)];
  std::vector<Field> fields{image_field(data),
                            {.name = "shown", .shape = {2}},
                            {.name = "boxes", .shape = {slots, 4}},
                            {.name = "labels", .element = Element::int64, .shape = {slots}}};
  if (job.instances.masks)
    fields.push_back({.name = "masks",
                      .element = Element::uint8,
                      .shape = {slots, job.instances.mask_size, job.instances.mask_size}});
  return fields;
}

std::unique_ptr<Encoder> make_instances_encoder(const spec::Job& job, std::vector<std::string> classes) {
  return std::make_unique<InstancesEncoder>(job, std::move(classes));
}

}  // namespace lockstep::task
