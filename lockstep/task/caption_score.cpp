// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption_score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/kept_rows.h"

namespace lockstep::task {
namespace {

using base::fixed;
using base::Json;
using base::text;

struct ScoredCaption {
  std::string made;  // words with blanks between them
  std::vector<std::string> references = {};
  double loss = 0;  // a word
};

Words words_in(const std::string& sentence) {
  return sentence.empty() ? Words() : base::split(sentence, ' ');
}

CaptionPair pair_of(const std::string& made, const std::vector<std::string>& references) {
  CaptionPair pair{words_in(made), {}};
  for (const auto& one : references) pair.references.push_back(words_in(one));
  return pair;
}

class CaptionScore final : public Score {
 public:
  CaptionScore(std::shared_ptr<const Vocabulary> words, int64_t worst, std::function<Json(const Rows&, int64_t)> record)
      : words_(std::move(words)), record_(std::move(record)), worst_(worst) {}

  void add(const Rows& rows) override {
    found_.reset();
    for (int64_t i = 0; i < rows.size(); ++i) {
      const int64_t length = *rows.field("length").values<int64_t>(i);
      if (length == 0 || rows.annotations.empty()) continue;
      const Json about = base::parse_json(rows.annotations[static_cast<size_t>(i)], "the image's annotation");
      ScoredCaption one;
      one.made = base::join(words_->decode(rows.output("words").row(i)), " ");
      for (const Json& reference : about.at("captions").items()) one.references.push_back(reference.as_string());
      const std::span<const float> given = rows.output("given").row(i);
      for (int64_t k = 0; k < length; ++k) one.loss -= static_cast<double>(given[static_cast<size_t>(k)]);
      one.loss /= static_cast<double>(length);
      const int64_t id = rows.sample_ids[static_cast<size_t>(i)];
      const double rouge = rouge_l(pair_of(one.made, one.references));
      captions_[id] = std::move(one);
      if (record_ && worst_.takes(rouge, id)) worst_.add(rouge, id, record_(rows, i));
    }
  }
  std::string pack() const override {
    Json all = Json::array();
    for (const auto& [id, one] : captions_) {
      Json row = Json::object();
      row["id"] = id;
      row["made"] = one.made;
      row["references"] = Json::array_of(one.references);
      row["loss"] = std::isfinite(one.loss) ? Json(one.loss) : Json();
      all.push_back(std::move(row));
    }
    return join_parts({all.dump(-1), worst_.pack()});
  }
  void merge(std::string_view packed) override {
    found_.reset();
    const std::string_view captions = next_part(packed);
    const Json all = base::parse_json(captions, "the score of a rank", {.max_bytes = captions.size()});
    for (const Json& row : all.items()) {
      ScoredCaption one;
      one.made = row.at("made").as_string();
      for (const Json& reference : row.at("references").items()) one.references.push_back(reference.as_string());
      one.loss = row.at("loss").is_null() ? std::nan("") : row.at("loss").as_double();
      captions_[row.at("id").as_int()] = std::move(one);
    }
    worst_.merge(next_part(packed));
  }

  int64_t samples() const override { return std::ssize(captions_); }
  Headline headline() const override {
    const double cider = found().cider;
    return {"cider", std::isfinite(loss()) ? cider : std::nan(""), true, text("CIDEr-D ", fixed(cider, 3))};
  }
  Json figures() const override {
    Json all = describe(found());
    all["loss"] = loss();
    return all;
  }
  std::string line() const override {
    const CaptionFigures all = found();
    return text("CIDEr-D ", fixed(all.cider, 3), "  BLEU-1 ", fixed(all.bleu[0], 3), "  BLEU-4 ", fixed(all.bleu[3], 3),
                "  ROUGE-L ", fixed(all.rouge_l, 3), "  loss ", fixed(loss(), 4));
  }
  Json to_json() const override {
    Json all = figures();
    all["samples"] = samples();
    const auto [caption, constant] = constant_answer();
    all["constant"] = describe(constant);
    all["constant"]["caption"] = caption;
    Json worst = Json::array();
    for (const auto& [key, record] : worst_.worst_first()) {
      const auto& [rouge, id] = key;
      const ScoredCaption& one = captions_.at(id);
      Json row = Json::object();
      row["sample"] = id;
      row["target"] = one.references.front();
      row["predicted"] = one.made;
      row["loss"] = std::isfinite(one.loss) ? Json(one.loss) : Json();
      row["rouge_l"] = rouge;
      row["record"] = record;
      worst.push_back(std::move(row));
    }
    all["worst"] = std::move(worst);
    return all;
  }
  std::string to_text() const override {
    const CaptionFigures all = found();
    const auto [caption, constant] = constant_answer();
    base::Table table({{"caption"},
                       {"BLEU-1", base::Align::right},
                       {"BLEU-2", base::Align::right},
                       {"BLEU-3", base::Align::right},
                       {"BLEU-4", base::Align::right},
                       {"ROUGE-L", base::Align::right},
                       {"CIDEr-D", base::Align::right}});
    const auto add = [&](const std::string& name, const CaptionFigures& one) {
      table.add({name, fixed(one.bleu[0], 3), fixed(one.bleu[1], 3), fixed(one.bleu[2], 3), fixed(one.bleu[3], 3),
                 fixed(one.rouge_l, 3), fixed(one.cider, 3)});
    };
    add("of the network", all);
    add(text("always \"", caption, "\""), constant);
    return text("  ", line(), "\n\n", table.to_text());
  }

 private:
  static Json describe(const CaptionFigures& figures) {
    Json all = Json::object();
    for (size_t i = 0; i < figures.bleu.size(); ++i) all[text("bleu", i + 1)] = figures.bleu[i];
    all["rouge_l"] = figures.rouge_l;
    all["cider"] = figures.cider;
    return all;
  }
  double loss() const {
    double sum = 0;
    for (const auto& [id, one] : captions_) sum += one.loss;
    return captions_.empty() ? 0 : sum / static_cast<double>(captions_.size());
  }
  CaptionFigures figures_with(const std::function<std::string(const ScoredCaption&)>& made) const {
    std::vector<CaptionPair> pairs;
    pairs.reserve(captions_.size());
    for (const auto& [id, one] : captions_) pairs.push_back(pair_of(made(one), one.references));
    return caption_figures(pairs);
  }
  const CaptionFigures& found() const {
    if (!found_) found_ = figures_with([](const ScoredCaption& one) { return one.made; });
    return *found_;
  }
  // The reference that most images have, as the answer to all: what a network that sees nothing may reach.
  std::pair<std::string, CaptionFigures> constant_answer() const {
    std::map<std::string, int64_t> counts;
    for (const auto& [id, one] : captions_) {
      for (const auto& reference : one.references) ++counts[reference];
    }
    if (counts.empty()) return {"", {}};
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return {most->first, figures_with([&](const ScoredCaption&) { return most->first; })};
  }

  std::shared_ptr<const Vocabulary> words_;
  std::function<Json(const Rows&, int64_t)> record_;
  std::map<int64_t, ScoredCaption> captions_;    // by sample
  WorstRecords worst_;                           // by ROUGE-L
  mutable std::optional<CaptionFigures> found_;  // none: something was added since
};

}  // namespace

std::unique_ptr<Score> make_caption_score(std::shared_ptr<const Vocabulary> words, int64_t worst,
                                          std::function<Json(const Rows&, int64_t)> record) {
  return std::make_unique<CaptionScore>(std::move(words), worst, std::move(record));
}

}  // namespace lockstep::task
