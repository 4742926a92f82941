// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption_encoder.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/render.h"
#include "lockstep/task/image_encoder.h"
#include "lockstep/task/json_member.h"
#include "lockstep/task/ptb_tokens.h"

namespace lockstep::task {
namespace {

using base::Json;

constexpr int kViewDraws = 64;  // numbers that a view may take before the caption is drawn

// Those that have words.
std::vector<std::vector<std::string>> captions_in(const Json& member) {
  std::vector<std::vector<std::string>> all;
  const Json* captions = member.find("captions");
  for (size_t i = 0; captions && captions->is_array() && i < captions->size(); ++i) {
    const Json& one = captions->items()[i];
    if (!one.is_string()) continue;
    if (auto words = ptb_tokens(one.as_string()); !words.empty()) all.push_back(std::move(words));
  }
  return all;
}

class CaptionEncoder final : public Encoder {
 public:
  CaptionEncoder(const spec::Job& job, std::shared_ptr<const Vocabulary> words)
      : data_(job.data), length_(job.caption.length), words_(std::move(words)), renderer_(job.data) {}

  void encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) override {
    const image::ImageInfo info = renderer_.chosen(
        sample.image,
        [&](const image::ImageInfo& seen) {
          const bool is_random = random && data_.augment != spec::Augment::none;
          return is_random ? image::random_view(seen.width, seen.height, data_, *random)
                           : image::whole_view(seen.width, seen.height, data_.image_size);
        },
        random ? 8 : 1, pixel_target(data_.pixels, out[0]));
    Json about = Json::object();
    about["width"] = info.width;
    about["height"] = info.height;
    if (sample.members.empty()) {  // a prediction: nobody has written a caption
      clear(out);
      annotation_ = about.dump(-1);
      return;
    }
    const auto captions = captions_in(read_json_member(sample.members[0]));
    if (captions.empty()) {
      throw base::Error(base::Blame::user, "it has no caption with a word in it",
                        "write one, or leave the image out of the list; data.on_bad_sample=skip passes over it");
    }
    size_t number = 0;
    if (random) {
      base::Random draw = *random;
      for (int i = 0; i < kViewDraws; ++i) draw.bits();
      number = static_cast<size_t>(draw.below(std::ssize(captions)));
    }
    fill(captions[number], out);
    Json references = Json::array();
    for (const auto& words : captions) references.push_back(base::join(words, " "));
    about["captions"] = std::move(references);
    annotation_ = about.dump(-1);
  }

  void draw(int32_t /*label*/, const base::Random& random, FieldPointers out) override {
    renderer_.noise(random, pixel_target(data_.pixels, out[0]));
    base::Random numbers = random;
    auto* const tokens = reinterpret_cast<int64_t*>(out[1]);
    for (int64_t i = 0; i < length_; ++i) tokens[i] = numbers.below(std::max<int64_t>(1, words_->size()));
    *reinterpret_cast<int64_t*>(out[2]) = length_;
    annotation_ = R"({"width": 1, "height": 1, "captions": ["drawn"]})";
  }

  void blank(FieldPointers out) override {
    renderer_.blank(pixel_target(data_.pixels, out[0]));
    clear(out);
    annotation_.clear();
  }
  double decode_seconds() const override { return renderer_.decode_seconds(); }
  std::string annotation() const override { return annotation_; }

 private:
  void fill(const std::vector<std::string>& words, FieldPointers out) const {
    const std::span<int64_t> tokens(reinterpret_cast<int64_t*>(out[1]), static_cast<size_t>(length_));
    *reinterpret_cast<int64_t*>(out[2]) = words_->encode(words, tokens);
  }
  void clear(FieldPointers out) const {
    std::fill_n(reinterpret_cast<int64_t*>(out[1]), length_, kPadWord);
    *reinterpret_cast<int64_t*>(out[2]) = 0;
  }

  spec::Data data_;
  int64_t length_;
  std::shared_ptr<const Vocabulary> words_;
  image::Renderer renderer_;
  std::string annotation_;
};

}  // namespace

std::vector<Field> caption_fields(const spec::Job& job) {
  return {image_field(job.data),
          {.name = "tokens", .element = Element::int64, .shape = {job.caption.length}},
          {.name = "length", .element = Element::int64}};
}

std::unique_ptr<Encoder> make_caption_encoder(const spec::Job& job, std::shared_ptr<const Vocabulary> words) {
  return std::make_unique<CaptionEncoder>(job, std::move(words));
}

}  // namespace lockstep::task
