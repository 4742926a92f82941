// SPDX-License-Identifier: Apache-2.0
#include "lockstep/catalogue/columns.h"

#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/error.h"

namespace lockstep::catalogue {
namespace {

Gpu parsed(std::string_view row) {
  return parse_row<Gpu>(base::parse_json(row, "gpus.json"));
}

std::string refusal(std::string_view row) {
  try {
    parsed(row);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return std::string(error.what()) + " | " + error.fix();
  }
  return "";
}

TEST(ColumnsTest, KeepWhatIsKnownAndWhatIsNot) {
  const Gpu gpu = parsed(R"({"id": "x1", "name": "X1", "vendor": "NVIDIA", "memory_gb": 12, "tflops_bf16": 0,
                             "bandwidth_gbs": null, "source": "a sheet", "date": "2026-11"})");
  EXPECT_EQ(gpu.memory_gb, 12);
  EXPECT_EQ(gpu.tflops_bf16, 0);               // it has none
  EXPECT_EQ(gpu.bandwidth_gbs, std::nullopt);  // nobody knows
  EXPECT_EQ(gpu.tflops_fp32, std::nullopt);    // nobody said
  EXPECT_EQ(parse_row<Gpu>(to_json(gpu)), gpu);
}

TEST(ColumnsTest, RefuseARowWithoutASourceOrADate) {
  EXPECT_EQ(refusal("{\"id\": \"x1\", \"date\": \"2026-11\"}"),
            "gpus.json:1:1: the row 'x1' has no source | add \"source\": where the figures come from (a page, a data "
            "sheet, a paper)");
  EXPECT_EQ(refusal("{\"id\": \"x1\",\n \"source\": \"\", \"date\": \"2026-11\"}").substr(0, 45),
            "gpus.json:2:12: the row 'x1' has no source | ");
  EXPECT_NE(refusal("{\"id\": \"x1\", \"source\": \"a sheet\"}").find("has no date | add \"date\""), std::string::npos);
}

TEST(ColumnsTest, NameAnUnknownKeyWithItsPlaceAndTheNearestOne) {
  EXPECT_EQ(refusal("{\"id\": \"x1\",\n \"memory_bg\": 3}"),
            "gpus.json:2:2: unknown key 'memory_bg' | did you mean 'memory_gb'?");
}

TEST(ColumnsTest, NameAWrongTypeWithItsPlace) {
  EXPECT_EQ(refusal("{\"id\": \"x1\", \"memory_gb\": \"12 GB\"}"),
            "gpus.json:1:27: a number is expected, this is a string | ");
  EXPECT_EQ(refusal("{\"id\": \"x1\", \"cores\": 1.5}"), "gpus.json:1:23: an integer is expected, this is a number | ");
  EXPECT_EQ(refusal("[]"), "gpus.json:1:1: a row is an object, this is a list | {\"id\": ..., ...}");
}

TEST(ColumnsTest, RefuseAnIdThatNobodyCouldType) {
  EXPECT_EQ(refusal("{\"id\": \"A 100\"}"),
            "gpus.json:1:8: 'A 100' is not an id | use small letters, digits and '-', e.g. \"a100-80\"");
  EXPECT_EQ(refusal("{\"name\": \"X\"}"), "gpus.json:1:1: the row has no id | add \"id\": \"...\"");
}

TEST(ColumnsTest, RefuseARowWithoutItsNameAndFiguresBelowZero) {
  EXPECT_EQ(refusal(R"({"id": "x1", "vendor": "NVIDIA", "source": "a", "date": "2026"})"),
            "gpus.json:1:1: the row 'x1' has no name | add \"name\"");
  EXPECT_EQ(refusal(R"({"id": "x1", "memory_gb": -3, "source": "a", "date": "2026"})"),
            "gpus.json:1:27: -3 is below zero | null where the figure is not known");
}

}  // namespace
}  // namespace lockstep::catalogue
