// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/synthesize_sentences.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {
namespace {

TEST(SynthesizeSentencesTest, TwoInFiveAreCaptionsAndNoneComesTwice) {
  const base::TemporaryFolder folder;
  SentencesRequest request{.folder = folder.path() / "a", .count = 500};
  EXPECT_EQ(prepare_sentences(request, nullptr).num_validate, 100);
  EXPECT_TRUE(prepare_sentences(request, nullptr).was_complete);
  const auto opened = open_source({.path = folder.path() / "a/sentences.csv"});
  const auto& samples = opened.source->samples();
  EXPECT_EQ(opened.format, "sentences");
  EXPECT_EQ(samples.size(), 500U);  // nothing was left out
  EXPECT_EQ(std::count_if(samples.begin(), samples.end(), [](const auto& one) { return one.label == 0; }), 200);
  EXPECT_EQ(std::count_if(samples.begin(), samples.end(), [](const auto& one) { return one.part == Part::validate; }),
            100);
  EXPECT_EQ(prepare_sentences({.folder = folder.path() / "b", .count = 500}, nullptr).fingerprint,
            prepare_sentences(request, nullptr).fingerprint);
}

TEST(SynthesizeSentencesTest, ImpossibleNumbersAreRefused) {
  const base::TemporaryFolder folder;
  EXPECT_THROW(prepare_sentences({.folder = folder.path() / "a", .count = 3}, nullptr), base::Error);
  EXPECT_THROW(prepare_sentences({.folder = folder.path() / "a", .count = 10000, .classes = 2}, nullptr), base::Error);
  EXPECT_THROW(prepare_sentences({.folder = folder.path() / "a", .image_size = 32}, nullptr), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
