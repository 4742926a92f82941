// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/draw.h"
#include "lockstep/task/caption_encoder.h"
#include "lockstep/task/caption_score.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::task {
namespace {

using base::Json;
using base::text;

constexpr int64_t kPlaceStride = 16;
constexpr std::string_view kShares = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr int64_t kPanelSide = 160, kPanelGap = 4;  // pixels of a picture's panels

std::vector<std::string> words_for(std::vector<std::string> classes, int64_t count) {
  for (auto i = std::ssize(classes); i < count; ++i) classes.push_back(text("word", i));
  return classes;
}

// A place's share as a digit of 62, relative to the largest of the word.
std::string attention_digits(std::span<const float> places) {
  const float most = *std::max_element(places.begin(), places.end());
  std::string digits;
  for (const float place : places) {
    const float share = most > 0 ? std::clamp(place / most, 0.0F, 1.0F) : 0;
    digits += kShares[static_cast<size_t>(std::lround(share * static_cast<float>(kShares.size() - 1)))];
  }
  return digits;
}

double level_of(char digit) {
  const size_t found = kShares.find(digit);
  return found == std::string_view::npos ? 0 : static_cast<double>(found) / static_cast<double>(kShares.size() - 1);
}

// Dark where nothing was looked at; between the places' middles the light changes evenly.
void shade(image::Image& panel, const std::string& digits, int64_t rows, int64_t columns) {
  const auto level = [&](int64_t y, int64_t x) {
    y = std::clamp<int64_t>(y, 0, rows - 1);
    x = std::clamp<int64_t>(x, 0, columns - 1);
    return level_of(digits[static_cast<size_t>(y * columns + x)]);
  };
  for (int64_t y = 0; y < panel.height; ++y) {
    const double v =
        (static_cast<double>(y) + 0.5) * static_cast<double>(rows) / static_cast<double>(panel.height) - 0.5;
    const auto top = static_cast<int64_t>(std::floor(v));
    for (int64_t x = 0; x < panel.width; ++x) {
      const double u =
          (static_cast<double>(x) + 0.5) * static_cast<double>(columns) / static_cast<double>(panel.width) - 0.5;
      const auto left = static_cast<int64_t>(std::floor(u));
      const double down = v - static_cast<double>(top), right = u - static_cast<double>(left);
      const double light = (1 - down) * ((1 - right) * level(top, left) + right * level(top, left + 1)) +
                           down * ((1 - right) * level(top + 1, left) + right * level(top + 1, left + 1));
      uint8_t* pixel = panel.row(y) + 3 * x;
      for (int c = 0; c < 3; ++c) pixel[c] = static_cast<uint8_t>(std::lround(pixel[c] * (0.15 + 0.85 * light)));
    }
  }
}

void paste(const image::Image& panel, int64_t left, int64_t top, image::Image& sheet) {
  for (int64_t y = 0; y < panel.height; ++y) {
    std::copy_n(panel.row(y), panel.width * 3, sheet.row(top + y) + 3 * left);
  }
}

class Caption final : public Task {
 public:
  Caption(const spec::Job& job, std::vector<std::string> classes)
      : job_(job), words_(std::make_shared<Vocabulary>(words_for(std::move(classes), job.model.classes))) {}

  std::vector<Field> fields() const override { return caption_fields(job_); }
  std::vector<std::string> members() const override { return {"json"}; }
  std::unique_ptr<Encoder> encoder() const override { return make_caption_encoder(job_, words_); }
  Classes classes() const override { return Classes::of_words; }
  int64_t num_outputs() const override { return words_->size(); }
  std::unique_ptr<Score> score(int64_t worst) const override {
    const Caption self = *this;
    return make_caption_score(words_, worst, [self](const Rows& rows, int64_t i) { return self.record(rows, i, 0); });
  }
  Json report_words() const override {
    return base::parse_json(R"({"title": "CIDEr-D", "share": false, "higher_is_better": true,
                                "training": "", "validation": "cider",
                                "also": {"BLEU-1": "bleu1", "BLEU-4": "bleu4", "ROUGE-L": "rouge_l"}})",
                            "report words");
  }
  NetworkWords network_words() const override {
    return {.gives = "a sentence for an image, with where it looked for each word", .activation = "docs/captions.md"};
  }

  // {"caption", "confidence", "words": [{"word", "probability", "attention"}], "places": [rows, columns]}
  Json record(const Rows& rows, int64_t i, int64_t /*top*/) const override {
    const std::vector<std::string> found = words_->decode(rows.output("words").row(i));
    const std::span<const float> logs = rows.output("log_probabilities").row(i);
    const std::span<const float> attention = rows.output("attention").row(i);
    const spec::ImageSize places = caption_places(job_.data.image_size);
    const auto count = static_cast<size_t>(places.pixels());
    Json words = Json::array();
    double sum = 0;
    for (size_t k = 0; k < found.size(); ++k) {
      Json one = Json::object();
      one["word"] = found[k];
      one["probability"] = rounded(std::exp(static_cast<double>(logs[k])));
      if (attention.size() >= (k + 1) * count) one["attention"] = attention_digits(attention.subspan(k * count, count));
      sum += static_cast<double>(logs[k]);
      words.push_back(std::move(one));
    }
    Json record = Json::object();
    record["caption"] = base::join(found, " ");
    record["confidence"] = rounded(found.empty() ? 0 : std::exp(sum / static_cast<double>(found.size())));
    record["places"] = Json::array({places.height, places.width});
    record["words"] = std::move(words);
    return record;
  }
  std::string line(const Json& record) const override {
    return text(record.at("caption").as_string(), "  (", base::fixed(record.at("confidence").as_double(), 2),
                " a word)");
  }
  std::vector<std::string> columns(int64_t /*top*/) const override { return {"caption", "confidence"}; }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    return {record.at("caption").as_string(), base::fixed(record.at("confidence").as_double(), 4)};
  }

  // A sheet in the image's place: the image with its caption, and a panel a word, bright where the network looked.
  bool draw(const Json& record, image::Image& on) const override {
    const Json* words = record.find("words");
    if (!words || !words->is_array() || on.width < 1 || on.height < 1) return false;
    const auto& places = record.at("places").items();
    const int64_t rows = places[0].as_int(), columns = places[1].as_int();
    const int64_t longer = std::max(on.width, on.height);
    const auto side = [&](int64_t length) { return std::max<int64_t>(1, length * kPanelSide / longer); };
    const image::Image small = image::resize_image(on, side(on.width), side(on.height));
    const int64_t count = std::ssize(words->items()) + 1, across = std::min<int64_t>(count, 5);
    const int64_t down = (count + across - 1) / across;
    const int64_t wide = small.width + kPanelGap, high = small.height + image::kLetterHeight + 3 * kPanelGap;
    image::Image sheet(across * wide + kPanelGap, down * high + kPanelGap);
    std::fill(sheet.pixels.begin(), sheet.pixels.end(), uint8_t{255});
    for (int64_t k = 0; k < count; ++k) {
      const int64_t left = kPanelGap + k % across * wide, top = kPanelGap + k / across * high;
      image::Image panel = small;
      std::string word = "image";
      if (k > 0) {
        const Json& one = words->items()[static_cast<size_t>(k - 1)];
        word = one.at("word").as_string();
        const std::string digits = one.string_or("attention", "");
        if (std::ssize(digits) == rows * columns) shade(panel, digits, rows, columns);
      }
      paste(panel, left, top + image::kLetterHeight + kPanelGap, sheet);
      image::draw_text(sheet, word, left, top, {0, 0, 0}, 1);
    }
    on = std::move(sheet);
    return true;
  }

 private:
  static Json rounded(double value) { return {std::round(value * 1e6) / 1e6}; }

  spec::Job job_;
  std::shared_ptr<const Vocabulary> words_;
};

}  // namespace

spec::ImageSize caption_places(const spec::ImageSize& image_size) {
  const auto cells = [](int64_t length) { return (length + kPlaceStride - 1) / kPlaceStride; };
  return {cells(image_size.height), cells(image_size.width)};
}

std::unique_ptr<Task> make_caption(const spec::Job& job, std::vector<std::string> classes) {
  return std::make_unique<Caption>(job, std::move(classes));
}

}  // namespace lockstep::task
