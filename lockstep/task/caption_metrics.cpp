// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption_metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

namespace lockstep::task {
namespace {

constexpr size_t kMostWords = 4;                // of an n-gram
constexpr double kTiny = 1e-15, kSmall = 1e-9;  // as pycocoevalcap adds them, so that nothing is divided by 0
constexpr double kRougeBeta = 1.2;
constexpr double kCiderSigma = 6;

using Counts = std::map<std::vector<std::string>, int64_t>;  // n-grams of 1 to 4 words

Counts ngrams_of(const Words& words) {
  Counts counts;
  for (size_t size = 1; size <= kMostWords; ++size) {
    for (size_t i = 0; i + size <= words.size(); ++i) {
      const auto begin = words.begin() + static_cast<std::ptrdiff_t>(i);
      ++counts[{begin, begin + static_cast<std::ptrdiff_t>(size)}];
    }
  }
  return counts;
}

int64_t closest_length(int64_t length, const std::vector<Words>& references) {
  int64_t best = std::ssize(references.front());
  for (const Words& reference : references) {
    const int64_t other = std::ssize(reference);
    const int64_t off = std::abs(other - length), best_off = std::abs(best - length);
    if (off < best_off || (off == best_off && other < best)) best = other;
  }
  return best;
}

std::array<double, 4> bleu_of(const std::vector<CaptionPair>& pairs) {
  std::array<int64_t, kMostWords> right = {}, guessed = {};
  int64_t made_length = 0, reference_length = 0;
  for (const CaptionPair& pair : pairs) {
    Counts most;
    for (const Words& reference : pair.references) {
      for (const auto& [ngram, count] : ngrams_of(reference)) most[ngram] = std::max(most[ngram], count);
    }
    for (const auto& [ngram, count] : ngrams_of(pair.made)) {
      const auto found = most.find(ngram);
      guessed[ngram.size() - 1] += count;
      if (found != most.end()) right[ngram.size() - 1] += std::min(count, found->second);
    }
    made_length += std::ssize(pair.made);
    reference_length += closest_length(std::ssize(pair.made), pair.references);
  }
  std::array<double, 4> bleu = {};
  double product = 1;
  for (size_t i = 0; i < kMostWords; ++i) {
    product *= (static_cast<double>(right[i]) + kTiny) / (static_cast<double>(guessed[i]) + kSmall);
    bleu[i] = std::pow(product, 1 / static_cast<double>(i + 1));
  }
  const double ratio = (static_cast<double>(made_length) + kTiny) / (static_cast<double>(reference_length) + kSmall);
  if (ratio < 1) {
    for (double& one : bleu) one *= std::exp(1 - 1 / ratio);
  }
  return bleu;
}

size_t longest_common(const Words& a, const Words& b) {
  std::vector<size_t> row(b.size() + 1);
  for (const std::string& word : a) {
    size_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = word == b[j - 1] ? diagonal + 1 : std::max(row[j], row[j - 1]);
      diagonal = above;
    }
  }
  return row.back();
}

// Of one caption: n-grams weighed by how rare they are, by their length, and the vectors' norms.
struct CiderVector {
  std::array<std::map<std::vector<std::string>, double>, kMostWords> weights;
  std::array<double, kMostWords> norms = {};
  double length = 0;  // 2-grams, as pycocoevalcap counts it
};

class CiderD {
 public:
  explicit CiderD(const std::vector<CaptionPair>& pairs) : log_images_(std::log(static_cast<double>(pairs.size()))) {
    for (const CaptionPair& pair : pairs) {
      std::set<std::vector<std::string>> seen;
      for (const Words& reference : pair.references) {
        for (const auto& [ngram, count] : ngrams_of(reference)) seen.insert(ngram);
      }
      for (const auto& ngram : seen) ++images_with_[ngram];
    }
  }

  double operator()(const CaptionPair& pair) const {
    const CiderVector made = vector_of(pair.made);
    double sum = 0;
    for (const Words& reference : pair.references) sum += similarity(made, vector_of(reference));
    return 10 * sum / static_cast<double>(pair.references.size());
  }

 private:
  CiderVector vector_of(const Words& words) const {
    CiderVector vector;
    for (const auto& [ngram, count] : ngrams_of(words)) {
      const auto found = images_with_.find(ngram);
      const double images = found == images_with_.end() ? 1 : static_cast<double>(found->second);
      const double weight = static_cast<double>(count) * (log_images_ - std::log(std::max(1.0, images)));
      vector.weights[ngram.size() - 1][ngram] = weight;
      vector.norms[ngram.size() - 1] += weight * weight;
      if (ngram.size() == 2) vector.length += static_cast<double>(count);
    }
    for (double& norm : vector.norms) norm = std::sqrt(norm);
    return vector;
  }

  static double similarity(const CiderVector& made, const CiderVector& reference) {
    const double off = made.length - reference.length;
    const double as_long = std::exp(-off * off / (2 * kCiderSigma * kCiderSigma));
    double sum = 0;
    for (size_t n = 0; n < kMostWords; ++n) {
      double product = 0;
      for (const auto& [ngram, weight] : made.weights[n]) {
        const auto found = reference.weights[n].find(ngram);
        if (found != reference.weights[n].end()) product += std::min(weight, found->second) * found->second;
      }
      if (made.norms[n] != 0 && reference.norms[n] != 0) product /= made.norms[n] * reference.norms[n];
      sum += product * as_long;
    }
    return sum / kMostWords;
  }

  double log_images_;
  std::map<std::vector<std::string>, int64_t> images_with_;
};

}  // namespace

double rouge_l(const CaptionPair& pair) {
  if (pair.made.empty()) return 0;
  double precision = 0, recall = 0;
  for (const Words& reference : pair.references) {
    if (reference.empty()) continue;
    const auto common = static_cast<double>(longest_common(pair.made, reference));
    precision = std::max(precision, common / static_cast<double>(pair.made.size()));
    recall = std::max(recall, common / static_cast<double>(reference.size()));
  }
  if (precision == 0 || recall == 0) return 0;
  constexpr double kSquare = kRougeBeta * kRougeBeta;
  return (1 + kSquare) * precision * recall / (recall + kSquare * precision);
}

CaptionFigures caption_figures(const std::vector<CaptionPair>& pairs) {
  CaptionFigures figures;
  if (pairs.empty()) return figures;
  figures.bleu = bleu_of(pairs);
  const CiderD cider(pairs);
  for (const CaptionPair& pair : pairs) {
    figures.rouge_l += rouge_l(pair);
    figures.cider += cider(pair);
  }
  figures.rouge_l /= static_cast<double>(pairs.size());
  figures.cider /= static_cast<double>(pairs.size());
  return figures;
}

}  // namespace lockstep::task
