// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/prep/tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/text.h"

namespace lockstep::verbs::prep {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(PrepTablesTest, ProgressTellsRateAndTimeLeft) {
  EXPECT_EQ(progress_text({1000, 3000, 50'000'000, 10}), "1,000 of 4,000  100/s  5 MB/s  30 s left");
}

TEST(PrepTablesTest, VerifyNamesEveryFault) {
  EXPECT_THAT(verify_text({1, 2, 3000, {}, 1}), HasSubstr("all is as it was written"));
  const std::string bad = verify_text({1, 2, 3000, {"a.tar/b: changed", "c.sxi: missing"}, 1});
  EXPECT_THAT(bad, HasSubstr("2 faults\n  a.tar/b: changed\n  c.sxi: missing\n"));
  EXPECT_THAT(bad, HasSubstr("the command of this set with --repair"));
}

TEST(PrepTablesTest, RepairNamesWhatWasMadeAgain) {
  EXPECT_THAT(repaired_text({7, {}, 1}, "set"), HasSubstr("set: 7 shards, all as they were written"));
  EXPECT_EQ(repaired_text({7, {"train-000001", "test-000000"}, 2}, "set"),
            "set: 2 of 7 shards made again in 2.0 s, as they were: train-000001, test-000000\n");
}

TEST(PrepTablesTest, CountsTheObjectsOfEachClass) {
  sources::Packed packed;
  packed.dataset = base::parse_json(R"({"source": "x", "source_format": "coco", "classes": ["cat", "dog"], "parts": {
      "train": {"samples": 3, "shards": 1, "bytes_in": 1, "tar_bytes": 1, "turned_upright": 0, "shrunk": 0,
                "per_class": [0, 0], "objects_per_class": [3, 1234], "bad_outlines": 2, "first_bad_outline": "a.jpg: two corners"},
      "validate": {"samples": 1, "shards": 1, "bytes_in": 1, "tar_bytes": 1, "turned_upright": 0, "shrunk": 0,
                   "per_class": [0, 0]}},
      "duplicates": {"groups": 0}, "num_unreadable": 0, "num_left_out": 0})",
                                    "dataset.json");
  const std::string all = packed_text(packed, "out");
  EXPECT_THAT(all, testing::ContainsRegex("objects of +train +validate"));
  EXPECT_THAT(all, testing::ContainsRegex("dog +1,234 +0"));
  EXPECT_THAT(all, HasSubstr("2 outlines are none and left out, the boxes stay: a.jpg: two corners"));
  EXPECT_THAT(all, Not(testing::ContainsRegex("class +train")));
}

TEST(PrepTablesTest, NamesClassesThatAreNotTrainedOn) {
  const auto report = [](const std::string& train, const std::string& test) {
    const std::string rest = R"("samples": 3, "shards": 1, "bytes_in": 1, "tar_bytes": 1, "turned_upright": 0,
                                "shrunk": 0})";
    sources::Packed packed;
    packed.dataset = base::parse_json(
        base::text(R"({"source": "x", "source_format": "folder", "classes": ["cat", "dog", "emu"],
                       "validate_share": null, "parts": {"train": {"per_class": )",
                   train, ",", rest, test.empty() ? "" : base::text(R"(, "test": {"per_class": )", test, ",", rest),
                   R"(}, "duplicates": {"groups": 0}, "num_unreadable": 0, "num_left_out": 0})"),
        "dataset.json");
    return packed_text(packed, "out");
  };
  EXPECT_THAT(report("[0, 3, 0]", "[1, 1, 1]"),
              HasSubstr("2 classes have no training sample, only others: cat, emu\n"));
  EXPECT_THAT(report("[0, 3, 1]", "[0, 1, 1]"), Not(HasSubstr("no training")));
  EXPECT_THAT(report("[1, 1, 1]", ""), HasSubstr("no validation part: each class has one sample"));
  EXPECT_THAT(report("[1, 2, 1]", ""), Not(HasSubstr("no validation part")));
}

TEST(PrepTablesTest, CountsSamplesWithoutAnImage) {
  sources::Packed packed;
  packed.dataset = base::parse_json(R"({"source": "x", "source_format": "npy", "classes": ["0"], "parts": {
      "train": {"samples": 1500, "shards": 1, "bytes_in": 1, "tar_bytes": 1, "turned_upright": 0, "shrunk": 0,
                "per_class": [1500], "without_image": 1200, "first_without_image": "array 3x32x32 of u1"}},
      "duplicates": {"groups": 0}, "num_unreadable": 0, "num_left_out": 0})",
                                    "dataset.json");
  EXPECT_THAT(packed_text(packed, "out"),
              HasSubstr("1,200 samples hold no image (the first: array 3x32x32 of u1), kept as it is"));
}

TEST(PrepTablesTest, NamesWhatIsLeftOutOnce) {
  sources::Packed packed;
  packed.dataset = base::parse_json(R"({"source": "x", "source_format": "folder", "classes": [], "parts": {
      "train": {"samples": 1, "shards": 1, "bytes_in": 1, "tar_bytes": 1, "turned_upright": 0, "shrunk": 0}},
      "duplicates": {"groups": 0}, "num_unreadable": 2, "num_left_out": 0,
      "unreadable": [{"name": "a.jpg", "reason": "a.jpg: this is no file"}, {"name": "b.jpg", "reason": "cut"}]})",
                                    "dataset.json");
  EXPECT_THAT(packed_text(packed, "out"), HasSubstr("    \"a.jpg\": this is no file\n    \"b.jpg\": cut\n"));
}

TEST(PrepTablesTest, ForecastSaysWhenItDoesNotFit) {
  sources::PackForecast forecast;
  forecast.bytes_out = 100;
  forecast.free_bytes = 200;
  EXPECT_THAT(forecast_text(forecast, "out"), Not(HasSubstr("does NOT fit")));
  forecast.free_bytes = 50;
  EXPECT_THAT(forecast_text(forecast, "out"), HasSubstr("does NOT fit"));
  forecast.free_bytes = 200;
  forecast.quota.free_bytes = 99;
  EXPECT_THAT(forecast_text(forecast, "out"), AllOf(HasSubstr("99 B left"), HasSubstr("does NOT fit")));
  forecast.quota.unanswered = "lfs";
  forecast.ranks = 4;
  forecast.threads = 2;
  EXPECT_THAT(forecast_text(forecast, "out"),
              AllOf(HasSubstr("time on 4 ranks of 2 threads"), HasSubstr("lfs took too long to answer")));
  forecast.is_complete = true;
  EXPECT_EQ(forecast_text(forecast, "out"), "out is complete already: nothing to do\n");
}

}  // namespace
}  // namespace lockstep::verbs::prep
