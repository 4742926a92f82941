// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/class_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "lockstep/base/error.h"

namespace lockstep::trust {
namespace {

template <class Value>
void put_values(std::string& out, const std::vector<Value>& values) {
  const auto count = static_cast<int64_t>(values.size());
  out.append(reinterpret_cast<const char*>(&count), sizeof count);
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value));
}

template <class Value>
void take_values(std::string_view& in, std::vector<Value>& values) {
  int64_t count = 0;
  base::ensure(in.size() >= sizeof count, "ranks hand over whole rows");
  std::memcpy(&count, in.data(), sizeof count);
  in.remove_prefix(sizeof count);
  const size_t bytes = static_cast<size_t>(count) * sizeof(Value);
  base::ensure(in.size() >= bytes, "ranks hand over whole rows");
  const size_t before = values.size();
  values.resize(before + static_cast<size_t>(count));
  if (bytes > 0) std::memcpy(values.data() + before, in.data(), bytes);
  in.remove_prefix(bytes);
}

}  // namespace

void ClassRows::add(std::span<const float> row, int64_t label, int64_t id, std::span<const float> feature) {
  if (label < 0) return;
  const auto is_finite = [](float value) { return std::isfinite(value); };
  if (!std::all_of(row.begin(), row.end(), is_finite) || !std::all_of(feature.begin(), feature.end(), is_finite)) {
    ++nonfinite;
    return;
  }
  classes = static_cast<int64_t>(row.size());
  width = static_cast<int64_t>(feature.size());
  base::ensure(label < classes, "a label is one of the classes");
  logits.insert(logits.end(), row.begin(), row.end());
  features.insert(features.end(), feature.begin(), feature.end());
  labels.push_back(label);
  ids.push_back(id);
}

ClassRows ClassRows::select(std::span<const int64_t> rows) const {
  ClassRows chosen;
  chosen.classes = classes;
  chosen.width = width;
  for (const int64_t i : rows) {
    const auto at = static_cast<size_t>(i);
    chosen.add(row(i), labels[at], ids[at], feature(i));
  }
  return chosen;
}

std::string ClassRows::pack() const {
  std::string out;
  put_values(out, std::vector<int64_t>{classes, width, nonfinite});
  put_values(out, logits);
  put_values(out, labels);
  put_values(out, ids);
  put_values(out, features);
  return out;
}

void ClassRows::merge(std::string_view packed) {
  std::vector<int64_t> head;
  take_values(packed, head);
  base::ensure(head.size() == 3, "ranks hand over whole rows");
  classes = std::max(classes, head[0]);  // a rank without samples knows none
  width = std::max(width, head[1]);
  nonfinite += head[2];
  take_values(packed, logits);
  take_values(packed, labels);
  take_values(packed, ids);
  take_values(packed, features);
}

void ClassRows::sort() {
  std::vector<int64_t> order(labels.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return ids[static_cast<size_t>(a)] < ids[static_cast<size_t>(b)]; });
  const int64_t left_out = nonfinite;
  *this = select(order);
  nonfinite = left_out;
}

std::vector<double> softmax(std::span<const float> logits, double temperature) {
  std::vector<double> shares(logits.size());
  const double most = logits.empty() ? 0 : *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) sum += shares[i] = std::exp((logits[i] - most) / temperature);
  for (double& share : shares) share /= sum;
  return shares;
}

int64_t top_class(std::span<const double> probabilities) {
  return std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin();
}

std::vector<Answer> answers(const ClassRows& rows, double temperature) {
  std::vector<Answer> all;
  all.reserve(rows.labels.size());
  for (int64_t i = 0; i < rows.size(); ++i) {
    const auto shares = softmax(rows.row(i), temperature);
    const int64_t said = top_class(shares);
    all.push_back({said, shares[static_cast<size_t>(said)], said == rows.labels[static_cast<size_t>(i)]});
  }
  return all;
}

}  // namespace lockstep::trust
