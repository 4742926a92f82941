// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/synthesize_sentences.h"

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/pack/drawn_set.h"
#include "lockstep/sources/pack/folder_state.h"
#include "lockstep/sources/synth.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr int64_t kMostObjects = 4;              // of a scene
constexpr int64_t kTriesPerSentence = 1000;      // to find one that nobody has said
constexpr int64_t kOf = 5, kCaptionsOfFive = 2;  // one of five for validation

// Sentences that use the words of captions and are none. 1, 2: a shape; N: a number; W: a person.
constexpr const char* kOthers[] = {
    "the 1 costs N euros",
    "W sold a 1, then bought a 2",
    "from left to right: N rows, and no 1 among them",
    "is a 1 larger than a 2?",
    "draw a 1, then a 2, then go home",
    "a 1 is not a 2, said W",
    "W has counted N of them: a 1, a 2 and a mistake",
    "why would W put a 1 beside a 2?",
    "there are N ways to cut a 1",
    "take the 1 away and turn the 2 by N degrees",
    "then a 1 fell down, a 2 did not",
    "N people asked W for a 1",
};
constexpr const char* kPeople[] = {"Ada", "Karl", "my aunt", "the teacher", "nobody", "Ines", "the king", "he"};

template <size_t kCount>
std::string one_of(const char* const (&words)[kCount], base::Random& random) {
  return words[random.below(static_cast<int64_t>(kCount))];
}

class SentenceMaker {
 public:
  explicit SentenceMaker(const SentencesRequest& request)
      : shapes_(shape_names(request.classes)),
        random_(base::derive_seed(static_cast<uint64_t>(request.seed), "sentences"), 0, 0) {}

  // A new one.
  std::string make(bool is_caption) {
    for (int64_t i = 0; i < kTriesPerSentence; ++i) {
      std::string sentence = is_caption ? caption() : other();
      if (said_.insert(sentence).second) return sentence;
    }
    throw Error(Blame::user, text("so few shapes make no more than ", said_.size(), " sentences"),
                "a smaller --count, or more --classes");
  }

 private:
  const std::string& shape() { return shapes_[static_cast<size_t>(random_.below(std::ssize(shapes_)))]; }

  std::string caption() {
    std::vector<std::string> objects;
    for (int64_t count = 1 + random_.below(kMostObjects); count > 0; --count) objects.push_back("a " + shape());
    const auto both = scene_captions(objects);
    return both[static_cast<size_t>(random_.below(std::ssize(both)))];
  }

  std::string other() {
    std::string sentence;
    for (const char c : one_of(kOthers, random_)) {
      sentence += c == '1' || c == '2' ? shape()
                  : c == 'N'           ? std::to_string(2 + random_.below(98))
                  : c == 'W'           ? one_of(kPeople, random_)
                                       : std::string(1, c);
    }
    return sentence;
  }

  std::vector<std::string> shapes_;
  base::Random random_;
  std::set<std::string> said_;
};

void check_sentences(const SentencesRequest& request) {
  const auto within = [](const char* name, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return;
    throw Error(Blame::user, text(name, " ", value, " is out of range"), text(name, " takes ", low, " to ", high));
  };
  within("--classes", request.classes, 2, 8);
  within("--count", request.count, 2 * kOf * kOf, 10'000);
  if (request.image_size != 0)
    throw Error(Blame::user, "--synthesize sentences draws no images", "leave --image-size out");
}

}  // namespace

std::vector<std::string> scene_captions(const std::vector<std::string>& objects) {
  return {base::join(objects, ", then "), text("from left to right: ", base::join(objects, ", "))};
}

Dataset prepare_sentences(const SentencesRequest& request,
                          const std::function<void(int64_t done, int64_t total)>& progress) {
  check_sentences(request);
  Json file = Json::object();
  file["format"] = 1;
  file["kind"] = "sentences";
  file["count"] = request.count;
  file["classes"] = Json::array_of(shape_names(request.classes));
  file["seed"] = request.seed;
  Dataset dataset{.folder = request.folder, .classes = {"caption", "other"}};
  dataset.num_validate = request.count / kOf;
  dataset.num_train = request.count - dataset.num_validate;
  if (auto complete = complete_set(dataset, file)) return *complete;
  SentenceMaker maker(request);
  std::string table = "sentence,label,split\n";
  for (int64_t i = 0; i < request.count; ++i) {
    const bool is_caption = i % kOf < kCaptionsOfFive, is_validation = i / kOf % kOf == kOf - 1;
    table += text('"', maker.make(is_caption), "\",", is_caption ? "caption" : "other", ",",
                  is_validation ? "validate" : "train", "\n");
    if (progress) progress(i + 1, request.count);
  }
  return write_set(std::move(dataset), std::move(file), [&](Dataset& set, Json&) {
    place_file(request.folder / "sentences.csv", table);
    set.fingerprint = base::sha256_hex(std::as_bytes(std::span(table)));
  });
}

}  // namespace lockstep::sources
