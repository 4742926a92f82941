// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trust/label_errors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lockstep/trust/drawn_rows.h"

namespace lockstep::trust {
namespace {

TEST(LabelErrorsTest, FindsLabelsThatWereExchanged) {
  ClassRows rows = drawn_rows(2000, 4, 1, 7);
  for (float& logit : rows.logits) logit *= 3;
  for (int64_t i = 0; i < rows.size(); ++i) rows.labels[static_cast<size_t>(i)] = top_class(softmax(rows.row(i)));
  std::set<int64_t> exchanged;
  for (int64_t i = 0; i < rows.size(); i += 12) {
    exchanged.insert(i);
    auto& label = rows.labels[static_cast<size_t>(i)];
    label = (label + 1) % 4;
  }
  const auto found = label_candidates(rows);
  ASSERT_FALSE(found.empty());
  for (const auto& candidate : found) EXPECT_TRUE(exchanged.contains(candidate.row));
  EXPECT_GT(found.size(), exchanged.size() / 2);
  EXPECT_TRUE(
      std::is_sorted(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.score < b.score; }));
  EXPECT_NE(found.front().given, found.front().suggested);
}

}  // namespace
}  // namespace lockstep::trust
