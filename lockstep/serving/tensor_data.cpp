// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/tensor_data.h"

#include <charconv>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::serving {
namespace {

using base::Blame;
using base::Error;

constexpr int kMaxNesting = 8;   // of data
constexpr int kTensorDepth = 3;  // document { inputs [ tensor {
constexpr int kDeepest = 64;     // as deep as the parser goes, at most

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lifter {
 public:
  explicit Lifter(std::string_view json) : json_(json) {}

  LiftedDocument lift() {
    int depth = 0;
    while (at_ < json_.size()) {
      const char c = json_[at_];
      if (c == '"') {
        const std::string_view word = raw_string();
        lifted_.document += word;
        if (depth == kTensorDepth && word == "\"data\"") data_behind_colon();
        continue;
      }
      if (c == '{' || c == '[') depth = std::min(depth + 1, kDeepest);
      if (c == '}' || c == ']') --depth;
      lifted_.document += c;
      ++at_;
    }
    return std::move(lifted_);
  }

 private:
  [[noreturn]] static void refuse(const char* why) {
    throw Error(Blame::user, base::text("request: the data of a tensor: ", why));
  }

  void skip_space() {
    while (at_ < json_.size() && is_space(json_[at_])) ++at_;
  }

  // With its quotes, as it stands; up to the end of the text where it has none.
  std::string_view raw_string() {
    const size_t start = at_++;
    while (at_ < json_.size() && json_[at_] != '"') at_ += json_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, json_.size());
    return json_.substr(start, at_ - start);
  }

  void data_behind_colon() {
    skip_space();
    if (at_ >= json_.size() || json_[at_] != ':') return;
    ++at_;
    skip_space();
    if (at_ >= json_.size() || json_[at_] != '[') refuse("an array is expected");
    TensorData data;
    array(data, 1);
    if (!data.numbers.empty() && !data.words.empty()) refuse("numbers and strings in one tensor");
    lifted_.document += base::text(":", lifted_.data.size());
    lifted_.data.push_back(std::move(data));
  }

  void array(TensorData& data, int nesting) {
    if (nesting > kMaxNesting) refuse("nested too deeply");
    ++at_;
    skip_space();
    if (at_ < json_.size() && json_[at_] == ']') {
      ++at_;
      return;
    }
    while (true) {
      value(data, nesting);
      skip_space();
      if (at_ >= json_.size()) refuse("the array does not end");
      const char c = json_[at_++];
      if (c == ']') return;
      if (c != ',') refuse("',' or ']' is expected");
      skip_space();
    }
  }

  void value(TensorData& data, int nesting) {
    if (at_ >= json_.size()) refuse("the array does not end");
    const char c = json_[at_];
    if (c == '[') return array(data, nesting + 1);
    if (c == '"') {
      data.words.push_back(base::parse_json(raw_string(), "request", {.max_bytes = json_.size()}).as_string());
      return;
    }
    // from_chars takes "inf" and "-nan", JSON does not.
    if (c != '-' && !is_digit(c)) refuse("a number or a string is expected");
    if (c == '-' && (at_ + 1 >= json_.size() || !is_digit(json_[at_ + 1]))) refuse("a digit is expected behind '-'");
    double number = 0;
    const auto [end, error] = std::from_chars(json_.data() + at_, json_.data() + json_.size(), number);
    if (error != std::errc() || end == json_.data() + at_) refuse("a number is expected");
    at_ = static_cast<size_t>(end - json_.data());
    data.numbers.push_back(static_cast<float>(number));
  }

  std::string_view json_;
  size_t at_ = 0;
  LiftedDocument lifted_;
};

}  // namespace

LiftedDocument lift_tensor_data(std::string_view json) {
  return Lifter(json).lift();
}

}  // namespace lockstep::serving
