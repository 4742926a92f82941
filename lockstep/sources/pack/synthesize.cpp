// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/synthesize.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/contact_sheet.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/label_image.h"
#include "lockstep/image/mask.h"
#include "lockstep/site/cores.h"
#include "lockstep/sources/kitti_label.h"
#include "lockstep/sources/pack/drawn_set.h"
#include "lockstep/sources/pack/folder_state.h"
#include "lockstep/sources/pack/ordered_work.h"
#include "lockstep/sources/pack/synthesize_sentences.h"
#include "lockstep/sources/synth.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;

constexpr int64_t kEvery = 5;                       // one of five for validation
constexpr double kFocal = 721.5377, kMetres = 1.6;  // KITTI's left colour camera; how tall a shape is taken to be

struct DrawnScene {
  std::string file;  // JPEG or PNG
  std::vector<SceneObject> objects;
};

bool is_validation(int64_t index) {
  return index % kEvery == kEvery - 1;
}

std::string number_of(int64_t index) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%06lld", static_cast<long long>(index));
  return digits;
}

// Of a polygon x, y, x, y, ... (the shoelace formula).
double area_of(const std::vector<double>& outline) {
  double twice = 0;
  for (size_t i = 0; i < outline.size(); i += 2) {
    const size_t next = (i + 2) % outline.size();
    twice += outline[i] * outline[next + 1] - outline[next] * outline[i + 1];
  }
  return std::abs(twice) / 2;
}

double cents(double value) {
  return std::round(value * 100) / 100;
}

// What each layout does with a scene; lists are written at the end.
class SceneLayout {
 public:
  SceneLayout(const ScenesRequest& request, std::vector<std::string> names)
      : request_(request), names_(std::move(names)) {}
  virtual ~SceneLayout() = default;
  virtual std::vector<Path> folders() const = 0;
  virtual void take(int64_t index, const DrawnScene& scene) = 0;
  virtual void finish() {}
  int64_t width() const {
    return request_.kind == "kitti" ? request_.image_size * 1242 / 375 : request_.image_size * 4 / 3;
  }

 protected:
  const ScenesRequest& request_;
  std::vector<std::string> names_;
};

class KittiLayout final : public SceneLayout {
 public:
  using SceneLayout::SceneLayout;
  std::vector<Path> folders() const override { return {"training/image_2", "training/label_2", "training/calib"}; }
  void take(int64_t index, const DrawnScene& scene) override {
    const Path root = request_.folder / "training";
    place_file(root / "image_2" / (number_of(index) + ".png"), scene.file);
    std::string labels;
    for (const auto& object : scene.objects) {
      const double depth = kFocal * kMetres / std::max(object.height, 1.0);
      const double across = (object.x + object.width / 2 - static_cast<double>(width()) / 2) * depth / kFocal;
      char line[256];
      std::snprintf(line, sizeof line, "%s 0.00 0 0.00 %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f %.2f 0.00\n",
                    kitti_types()[static_cast<size_t>(object.label)].c_str(), object.x, object.y,
                    object.x + object.width, object.y + object.height, kMetres, kMetres, kMetres, across, kMetres,
                    depth);
      labels += line;
    }
    place_file(root / "label_2" / (number_of(index) + ".txt"), labels);
    place_file(root / "calib" / (number_of(index) + ".txt"),
               text("P2: ", kFocal, " 0 ", width() / 2, " 0 0 ", kFocal, " ", request_.image_size / 2, " 0 0 0 1 0\n"));
  }
};

class CocoLayout final : public SceneLayout {
 public:
  using SceneLayout::SceneLayout;
  std::vector<Path> folders() const override { return {"train", "val", "annotations"}; }
  void take(int64_t index, const DrawnScene& scene) override {
    Part& part = is_validation(index) ? validate_ : train_;
    const std::string name = number_of(index) + ".jpg";
    place_file(request_.folder / (is_validation(index) ? "val" : "train") / name, scene.file);
    Json image = Json::object();
    image["id"] = index;
    image["file_name"] = name;
    image["width"] = width();
    image["height"] = request_.image_size;
    part.images.push_back(std::move(image));
    for (const auto& object : scene.objects) {
      Json one = Json::object(), polygon = Json::array();
      for (const double value : object.outline) polygon.push_back(cents(value));
      one["id"] = ++num_annotations_;
      one["image_id"] = index;
      one["category_id"] = object.label + 1;
      one["bbox"] = Json::array({cents(object.x), cents(object.y), cents(object.width), cents(object.height)});
      one["area"] = cents(area_of(object.outline));
      one["iscrowd"] = 0;
      one["segmentation"] = Json::array({std::move(polygon)});
      part.annotations.push_back(std::move(one));
    }
  }
  void finish() override {
    for (auto& [name, part] : {std::pair<const char*, Part&>{"train", train_}, {"val", validate_}}) {
      Json all = Json::object(), categories = Json::array();
      for (size_t i = 0; i < names_.size(); ++i) {
        Json category = Json::object();
        category["id"] = i + 1;
        category["name"] = names_[i];
        categories.push_back(std::move(category));
      }
      all["images"] = part.images;
      all["categories"] = std::move(categories);
      all["annotations"] = part.annotations;
      place_file(request_.folder / "annotations" / text("instances_", name, ".json"), all.dump(-1) + "\n");
    }
  }

 private:
  struct Part {
    Json images = Json::array();
    Json annotations = Json::array();
  };
  Part train_, validate_;
  int64_t num_annotations_ = 0;
};

class CaptionLayout final : public SceneLayout {
 public:
  using SceneLayout::SceneLayout;
  std::vector<Path> folders() const override { return {"images"}; }
  void take(int64_t index, const DrawnScene& scene) override {
    const std::string name = number_of(index) + ".jpg";
    place_file(request_.folder / "images" / name, scene.file);
    std::vector<std::string> words;
    for (const auto& object : scene.objects) words.push_back("a " + names_[static_cast<size_t>(object.label)]);
    Json one = Json::object();
    one["image"] = name;
    one["split"] = is_validation(index) ? "val" : "train";
    one["caption"] = Json::array_of(scene_captions(words));
    list_.push_back(std::move(one));
  }
  void finish() override { place_file(request_.folder / "captions.json", list_.dump(-1) + "\n"); }

 private:
  Json list_ = Json::array();
};

// As PASCAL VOC has it: a class a pixel, 0 for none, and 255 along the edges.
class LabelLayout final : public SceneLayout {
 public:
  using SceneLayout::SceneLayout;
  std::vector<Path> folders() const override { return {"JPEGImages", "SegmentationClass", "ImageSets/Segmentation"}; }
  void take(int64_t index, const DrawnScene& scene) override {
    const std::string name = number_of(index);
    place_file(request_.folder / "JPEGImages" / (name + ".jpg"), scene.file);
    image::Bitmap labels{width(), request_.image_size,
                         std::vector<uint8_t>(static_cast<size_t>(width() * request_.image_size))};
    for (const auto& object : scene.objects) {
      image::Mask mask(labels.width, labels.height);
      image::add_polygon(mask, object.outline);
      for (size_t i = 0; i < mask.inside.size(); ++i) {
        if (mask.inside[i] != 0) labels.pixels[i] = static_cast<uint8_t>(object.label + 1);
      }
    }
    place_file(request_.folder / "SegmentationClass" / (name + ".png"), image::encode_labels(with_edges(labels)));
    (is_validation(index) ? validate_ : train_) += name + "\n";
  }
  void finish() override {
    place_file(request_.folder / "ImageSets/Segmentation/train.txt", train_);
    place_file(request_.folder / "ImageSets/Segmentation/val.txt", validate_);
    place_file(request_.folder / "classes.txt", text("background\n", base::join(names_, "\n"), "\n"));
  }

 private:
  static image::Bitmap with_edges(const image::Bitmap& labels) {
    image::Bitmap shown = labels;
    for (int64_t y = 0; y + 1 < labels.height; ++y) {
      for (int64_t x = 0; x + 1 < labels.width; ++x) {
        const auto i = static_cast<size_t>(y * labels.width + x), below = i + static_cast<size_t>(labels.width);
        if (labels.pixels[i] != labels.pixels[i + 1] || labels.pixels[i] != labels.pixels[below]) shown.pixels[i] = 255;
      }
    }
    return shown;
  }
  std::string train_, validate_;
};

void check_scenes(const ScenesRequest& request) {
  const auto within = [](const char* name, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return;
    throw Error(Blame::user, text(name, " ", value, " is out of range"), text(name, " takes ", low, " to ", high));
  };
  within("--classes", request.classes, 2, 8);
  within("--count", request.count, kEvery, 1'000'000);
  within("--image-size", request.image_size, 32, 1024);
  within("--threads", request.threads, 0, 1024);
}

std::unique_ptr<SceneLayout> layout_of(const ScenesRequest& request) {
  const std::vector<std::string> names = shape_names(request.classes);
  if (request.kind == "kitti") return std::make_unique<KittiLayout>(request, names);
  if (request.kind == "coco") return std::make_unique<CocoLayout>(request, names);
  if (request.kind == "labels") return std::make_unique<LabelLayout>(request, names);
  base::ensure(request.kind == "captions", "a known kind of scenes");
  return std::make_unique<CaptionLayout>(request, names);
}

Json describe_scenes(const ScenesRequest& request) {
  Json all = Json::object();
  all["format"] = 1;
  all["kind"] = request.kind;
  all["count"] = request.count;
  all["classes"] = Json::array_of(shape_names(request.classes));
  all["seed"] = request.seed;
  all["image_size"] = request.image_size;
  return all;
}

}  // namespace

Dataset prepare_scenes(const ScenesRequest& request, const std::function<void(int64_t, int64_t)>& progress) {
  check_scenes(request);
  Json file = describe_scenes(request);
  Dataset dataset{.folder = request.folder, .classes = shape_names(request.classes)};
  dataset.num_validate = request.count / kEvery;
  dataset.num_train = request.count - dataset.num_validate;
  if (auto complete = complete_set(dataset, file)) return *complete;
  const auto layout = layout_of(request);
  return write_set(std::move(dataset), std::move(file), [&](Dataset& set, Json& described) {
    for (const auto& folder : layout->folders()) base::make_folders(request.folder / folder);
    base::Sha256 all;
    std::vector<image::SheetRow> rows;
    const int64_t threads = request.threads > 0 ? request.threads : site::usable_cores();
    work_in_order<DrawnScene>(
        request.count, {threads, 16 * threads},
        [&](int64_t i) {
          Scene scene = draw_scene(layout->width(), request.image_size, request.classes, request.seed, i);
          return DrawnScene{
              request.kind == "kitti" ? image::encode_png(scene.image) : image::encode_jpeg(scene.image, 90),
              std::move(scene.objects)};
        },
        [&](int64_t i, DrawnScene&& scene) {
          all.update(scene.file);
          layout->take(i, scene);
          if (i % 6 == 0 && i < 36) rows.push_back({"", {}});
          if (i < 36)
            rows.back().pictures.push_back(
                image::decode_image(std::as_bytes(std::span(scene.file.data(), scene.file.size()))));
          if (progress) progress(i + 1, request.count);
        });
    layout->finish();
    place_file(request.folder / "contact.jpg", image::encode_jpeg(image::contact_sheet(rows, 128), 92));
    described["train"] = set.num_train;
    described["validate"] = set.num_validate;
    set.fingerprint = all.hex();
  });
}

}  // namespace lockstep::sources
