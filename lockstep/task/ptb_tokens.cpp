// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/ptb_tokens.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

namespace lockstep::task {
namespace {

// Typographic signs in the place of ASCII's.
constexpr std::pair<std::string_view, std::string_view> kPlainSigns[] = {
    {"\xE2\x80\x98", "'"},    {"\xE2\x80\x99", "'"},    {"\xE2\x80\x9C", "\""},    {"\xE2\x80\x9D", "\""},
    {"\xE2\x80\x93", " -- "}, {"\xE2\x80\x94", " -- "}, {"\xE2\x80\xA6", " ... "}, {"\xC2\xAB", "\""},
    {"\xC2\xBB", "\""},       {"\xC2\xA0", " "}};

// Ends of a word that are words of their own.
constexpr std::string_view kEndings[] = {"n't", "'s", "'re", "'ve", "'ll", "'d", "'m"};

// Signs that always stand alone.
constexpr std::string_view kAlone = "$%&=\"()[]{}?!;";

const std::set<std::string, std::less<>>& dropped() {
  static const std::set<std::string, std::less<>> kDropped = {"''", "'", "``", "`",  ".",   "?", "!",
                                                              ",",  ":", "-",  "--", "...", ";", "\""};
  return kDropped;
}

std::string plain(std::string_view sentence) {
  std::string text;
  text.reserve(sentence.size());
  for (size_t at = 0; at < sentence.size();) {
    const auto sign = std::find_if(std::begin(kPlainSigns), std::end(kPlainSigns),
                                   [&](const auto& one) { return sentence.substr(at).starts_with(one.first); });
    if (sign == std::end(kPlainSigns)) {
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(sentence[at++])));
      continue;
    }
    text += sign->second;
    at += sign->first.size();
  }
  return text;
}

bool is_digit_at(std::string_view text, size_t i) {
  return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
}

bool stands_alone(std::string_view text, size_t i) {
  const char sign = text[i];
  if (kAlone.find(sign) != std::string_view::npos) return true;
  if (sign != ',' && sign != ':') return false;
  return !(i > 0 && is_digit_at(text, i - 1) && is_digit_at(text, i + 1));  // 1,000 and 10:30 are one word
}

std::string spaced(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      result += " ... ";
      i += 2;
    } else if (text.substr(i, 2) == "--") {
      result += " -- ";
      ++i;
    } else if (stands_alone(text, i)) {
      result += ' ';
      result += text[i];
      result += ' ';
    } else {
      result += text[i];
    }
  }
  return result;
}

std::string named_bracket(char sign) {
  switch (sign) {
    case '(':
      return "-lrb-";
    case ')':
      return "-rrb-";
    case '[':
      return "-lsb-";
    case ']':
      return "-rsb-";
    case '{':
      return "-lcb-";
    case '}':
      return "-rcb-";
    default:
      return {sign};
  }
}

void add_word(std::string_view word, std::vector<std::string>& words) {
  if (!word.empty() && dropped().count(word) == 0) words.emplace_back(word);
}

// A word without quotes around it and a full stop behind it.
std::string_view without_quotes(std::string_view word) {
  if (word.size() == 1 || dropped().count(word) > 0) return word;
  while (word.size() > 1 && (word.front() == '\'' || word.front() == '`')) {
    if (std::find(std::begin(kEndings), std::end(kEndings), word) != std::end(kEndings)) break;
    word.remove_prefix(1);
  }
  while (word.size() > 1 && (word.back() == '\'' || word.back() == '`')) word.remove_suffix(1);
  if (word.size() < 2 || word.back() != '.') return word;
  // The dots of "u.s." and "e.g." belong to them.
  const bool is_short = word.size() > 3 && word.find('.') + 1 < word.size() && word[word.size() - 3] == '.';
  if (!is_short) word.remove_suffix(1);
  return word;
}

// The word, and its endings apart: one by one, for "'s's's" may go on for as long as somebody likes.
void add_parts(std::string_view word, std::vector<std::string>& words) {
  std::vector<std::string_view> endings;
  while (true) {
    word = without_quotes(word);
    const auto ending = std::find_if(std::begin(kEndings), std::end(kEndings), [&](std::string_view one) {
      return word.size() > one.size() && word.ends_with(one);
    });
    if (ending == std::end(kEndings)) break;
    endings.push_back(*ending);
    word.remove_suffix(ending->size());
  }
  if (word == "cannot") {
    words.emplace_back("can");
    words.emplace_back("not");
  } else if (word.size() == 1 && dropped().count(word) == 0) {
    add_word(named_bracket(word[0]), words);
  } else {
    add_word(word, words);
  }
  for (auto ending = endings.rbegin(); ending != endings.rend(); ++ending) add_word(*ending, words);
}

}  // namespace

std::vector<std::string> ptb_tokens(std::string_view sentence) {
  const std::string text = spaced(plain(sentence));
  std::vector<std::string> words;
  for (size_t begin = 0; begin < text.size();) {
    const auto is_space = [](unsigned char letter) { return std::isspace(letter) != 0; };
    const auto first = std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(begin), text.end(), is_space);
    const auto last = std::find_if(first, text.end(), is_space);
    if (first != last) add_parts(std::string_view(&*first, static_cast<size_t>(last - first)), words);
    begin = static_cast<size_t>(last - text.begin());
    if (last == text.end()) break;
  }
  return words;
}

}  // namespace lockstep::task
