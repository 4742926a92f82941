// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/segment_encoder.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/label_image.h"
#include "lockstep/image/render.h"
#include "lockstep/task/image_encoder.h"
#include "lockstep/task/objects.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr int16_t kUnknownValue = -1;
using LabelOfValue = std::array<int16_t, 256>;

class SegmentEncoder final : public Encoder {
 public:
  SegmentEncoder(const spec::Job& job, std::vector<std::string> classes, int64_t num_labels)
      : data_(job.data),
        segment_(job.segment),
        classes_(std::move(classes)),
        num_labels_(num_labels),
        renderer_(job.data) {
    by_value_.fill(kUnknownValue);
    for (int64_t label = 0; label < num_labels; ++label) {
      const auto i = static_cast<size_t>(label);
      const auto value = segment_.values.empty() ? label : std::llround(segment_.values[i]);
      by_value_[static_cast<size_t>(value)] = static_cast<int16_t>(label);
    }
    by_value_[static_cast<size_t>(segment_.ignore)] = kNoClass;
  }

  void encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) override {
    image::View view;
    const image::ImageInfo info = renderer_.chosen(
        sample.image,
        [&](const image::ImageInfo& seen) {
          const bool is_random = random && data_.augment != spec::Augment::none;
          view = is_random ? image::random_view(seen.width, seen.height, data_, *random)
                           : image::whole_view(seen.width, seen.height, data_.image_size);
          return view;
        },
        random ? 8 : 1, pixel_target(data_.pixels, out[0]));
    annotation_ = annotation_text(info.width, info.height);
    if (sample.members.empty()) return clear(out);  // a prediction: nobody knows the labels
    const image::Bitmap labels = image::decode_labels(sample.members[0]);
    if (labels.width != info.width || labels.height != info.height) {
      throw Error(Blame::user,
                  text("its label image is ", labels.width, " x ", labels.height, ", the image ", info.width, " x ",
                       info.height),
                  "labels stand for pixels of the image as it is seen: prepare the two again together");
    }
    const bool has_objects = segment_.pixels == spec::LabelPixels::objects;
    const LabelOfValue table = has_objects ? by_object(sample.members.at(1)) : by_value_;
    const image::Bitmap shown = image::show_mask(view, labels);
    auto* const to = reinterpret_cast<uint8_t*>(out[1]);
    for (size_t i = 0; i < shown.pixels.size(); ++i) {
      const int16_t label = table[shown.pixels[i]];
      if (label == kUnknownValue) refuse(shown.pixels[i]);
      to[i] = static_cast<uint8_t>(label);
    }
  }

  void draw(int32_t /*label*/, const base::Random& random, FieldPointers out) override {
    renderer_.noise(random, pixel_target(data_.pixels, out[0]));
    base::Random numbers = random;
    const int64_t height = data_.image_size.height, width = data_.image_size.width;
    auto* const to = reinterpret_cast<uint8_t*>(out[1]);
    const int64_t first = numbers.below(num_labels_), second = numbers.below(num_labels_);
    const int64_t edge = numbers.below(height);
    for (int64_t y = 0; y < height; ++y)
      std::fill_n(to + y * width, width, static_cast<uint8_t>(y < edge ? first : second));
    annotation_ = annotation_text(width, height);
  }

  void blank(FieldPointers out) override {
    renderer_.blank(pixel_target(data_.pixels, out[0]));
    clear(out);
    annotation_.clear();
  }
  double decode_seconds() const override { return renderer_.decode_seconds(); }
  std::string annotation() const override { return annotation_; }

 private:
  void clear(FieldPointers out) const {
    std::fill_n(reinterpret_cast<uint8_t*>(out[1]), data_.image_size.pixels(), kNoClass);
  }

  // Values are numbers of objects, from 1; 0 is the background. A crowd has no class: it is of many objects.
  LabelOfValue by_object(std::span<const std::byte> member) const {
    LabelOfValue table;
    table.fill(kUnknownValue);
    table[0] = 0;
    for (const Object& object : read_objects(member, classes_).objects) {
      if (object.number + 1 > 255) continue;
      table[static_cast<size_t>(object.number + 1)] =
          object.crowd ? int16_t{kNoClass} : static_cast<int16_t>(object.label + 1);
    }
    return table;
  }

  [[noreturn]] void refuse(uint8_t value) const {
    if (segment_.pixels == spec::LabelPixels::objects) {
      throw Error(Blame::user, text("its label image holds object ", int{value}, ", which its json has not"),
                  "prepare the set again; label images of classes: \"pixels\": \"labels\"");
    }
    throw Error(Blame::user,
                text("its label image holds the value ", int{value}, ", which is none of the ", num_labels_,
                     " labels and not segment.ignore, ", segment_.ignore),
                "name every class in segment.classes, and its value in segment.values");
  }

  spec::Data data_;
  spec::Segment segment_;
  std::vector<std::string> classes_;
  int64_t num_labels_;
  image::Renderer renderer_;
  LabelOfValue by_value_ = {};
  std::string annotation_;
};

}  // namespace

std::vector<Field> segment_fields(const spec::Job& job) {
  const spec::ImageSize& size = job.data.image_size;
  return {image_field(job.data), {.name = "labels", .element = Element::uint8, .shape = {size.height, size.width}}};
}

std::unique_ptr<Encoder> make_segment_encoder(const spec::Job& job, std::vector<std::string> classes,
                                              int64_t num_labels) {
  return std::make_unique<SegmentEncoder>(job, std::move(classes), num_labels);
}

}  // namespace lockstep::task
