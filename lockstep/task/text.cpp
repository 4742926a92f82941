// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/text.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/task/ngrams.h"
#include "lockstep/task/ptb_tokens.h"
#include "lockstep/task/text_score.h"

namespace lockstep::task {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr const char* kCaptionClass = "caption";
constexpr int64_t kNotLabelled = -1;

class SentenceEncoder final : public Encoder {
 public:
  explicit SentenceEncoder(const spec::Text& how) : how_(how) {}

  void encode(const StoredSample& sample, const std::optional<base::Random>& /*random*/, FieldPointers out) override {
    const double start = base::steady_seconds();
    sentence_ = checked_sentence(sample.image);
    std::vector<int64_t> ngrams = hashed_ngrams(sentence_, how_);
    ngrams.resize(static_cast<size_t>(how_.slots), kNoNgram);
    std::copy(ngrams.begin(), ngrams.end(), numbers(out, 0));
    *numbers(out, 1) = sample.label;
    seconds_ = base::steady_seconds() - start;
  }
  void draw(int32_t label, const base::Random& random, FieldPointers out) override {
    base::Random numbers_of = random;
    std::generate_n(numbers(out, 0), how_.slots, [&] { return 1 + numbers_of.below(how_.buckets); });
    *numbers(out, 1) = label;
    sentence_.clear();
  }
  void blank(FieldPointers out) override {
    std::fill_n(numbers(out, 0), how_.slots, kNoNgram);
    *numbers(out, 1) = kNotLabelled;
    sentence_.clear();
  }
  double decode_seconds() const override { return seconds_; }
  std::string annotation() const override {
    if (sentence_.empty()) return "";
    Json all = Json::object();
    all["text"] = sentence_;
    return all.dump(-1);
  }

 private:
  static int64_t* numbers(FieldPointers out, size_t field) { return reinterpret_cast<int64_t*>(out[field]); }

  spec::Text how_;
  std::string sentence_;
  double seconds_ = 0;
};

int64_t positive_label(const std::string& wanted, const std::vector<std::string>& classes) {
  const std::string name = wanted.empty() ? kCaptionClass : wanted;
  const auto found = std::find(classes.begin(), classes.end(), name);
  if (found != classes.end()) return found - classes.begin();
  if (wanted.empty() || classes.empty()) return std::max<int64_t>(0, std::ssize(classes) - 1);
  throw Error(Blame::user, text("text.positive: the data have no class '", wanted, "'"),
              base::did_you_mean(wanted, classes));
}

class Text final : public Task {
 public:
  Text(const spec::Job& job, std::vector<std::string> classes)
      : how_(job.text), classes_(std::move(classes)), positive_(positive_label(how_.positive, classes_)) {
    for (auto i = std::ssize(classes_); i < job.model.classes; ++i) classes_.push_back(text(i));
  }

  std::vector<Field> fields() const override {
    return {{.name = "tokens", .element = Element::int64, .shape = {how_.slots}},
            {.name = "label", .element = Element::int64}};
  }
  std::string main_member() const override { return "txt"; }
  std::unique_ptr<Encoder> encoder() const override { return std::make_unique<SentenceEncoder>(how_); }
  Classes classes() const override { return Classes::of_samples; }
  int64_t num_outputs() const override { return std::ssize(classes_); }
  std::unique_ptr<Score> score(int64_t worst) const override { return make_text_score(classes_, positive_, worst); }
  Json report_words() const override {
    Json words = base::parse_json(R"({"share": true, "higher_is_better": true, "training": "", "validation": "f1",
                                      "also": {"precision": "precision", "recall": "recall", "accuracy": "accuracy"}})",
                                  "report words");
    words["title"] = text("F1 of ", told(positive_));
    return words;
  }
  NetworkWords network_words() const override {
    return {.gives = "the class of a sentence: softmax of the outputs",
            .activation = "softmax",
            .takes = "Sentences in UTF-8, by their hashed n-grams"};
  }

  Json record(const Rows& rows, int64_t i, int64_t top) const override {
    const auto shares = rows.output("probabilities").row(i);
    std::vector<int64_t> labels(shares.size());
    for (size_t c = 0; c < shares.size(); ++c) labels[c] = static_cast<int64_t>(c);
    const auto share = [&](int64_t label) { return shares[static_cast<size_t>(label)]; };
    std::stable_sort(labels.begin(), labels.end(), [&](int64_t a, int64_t b) { return share(a) > share(b); });
    Json record = Json::object(), answers = Json::array();
    if (!rows.annotations.empty() && !rows.annotations[static_cast<size_t>(i)].empty())
      record["text"] = base::parse_json(rows.annotations[static_cast<size_t>(i)], "annotation").at("text");
    record["label"] = told(labels.front());
    record["probability"] = static_cast<double>(share(positive_));
    for (size_t c = 0; c < std::min(labels.size(), static_cast<size_t>(std::max<int64_t>(1, top))); ++c) {
      Json answer = Json::object();
      answer["name"] = told(labels[c]);
      answer["probability"] = static_cast<double>(share(labels[c]));
      answers.push_back(std::move(answer));
    }
    record["classes"] = std::move(answers);
    return record;
  }
  std::string line(const Json& record) const override {
    const Json& best = record.at("classes").items().front();
    return text(best.at("name").as_string(), " ", base::percent(best.at("probability").as_double()), "  ",
                record.string_or("text", ""));
  }
  std::vector<std::string> columns(int64_t /*top*/) const override {
    return {"text", "label", "confidence", text("probability of ", told(positive_))};
  }
  std::vector<std::string> cells(const Json& record, int64_t /*top*/) const override {
    const Json& best = record.at("classes").items().front();
    return {record.string_or("text", ""), best.at("name").as_string(),
            base::fixed(best.at("probability").as_double(), 6), base::fixed(record.at("probability").as_double(), 6)};
  }

 private:
  std::string told(int64_t label) const {
    return label < std::ssize(classes_) ? classes_[static_cast<size_t>(label)] : text(label);
  }

  spec::Text how_;
  std::vector<std::string> classes_;
  int64_t positive_;
};

}  // namespace

std::string checked_sentence(std::span<const std::byte> bytes) {
  const std::string_view words(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!base::is_utf8(words)) {
    size_t at = 0;
    while (const size_t length = base::utf8_length(words, at)) at += length;
    throw Error(Blame::user, text("byte ", at + 1, " of the sentence is no UTF-8"),
                "save the list as UTF-8: iconv -f latin1 -t utf-8");
  }
  std::string sentence(base::trim(words));
  if (ptb_tokens(sentence).empty()) throw Error(Blame::user, "the sentence is empty: there is no word in it");
  return sentence;
}

std::unique_ptr<Task> make_text(const spec::Job& job, std::vector<std::string> classes) {
  return std::make_unique<Text>(job, std::move(classes));
}

}  // namespace lockstep::task
