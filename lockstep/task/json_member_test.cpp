// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/json_member.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

TEST(JsonMemberTest, NamesTheKeysThatThereAreInPlaceOfAMissingNumber) {
  const std::string bytes = R"({"age": "old", "height": 2, "exact": "0.9294117647058824"})";
  const base::Json document = read_json_member(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(number_in(document, "height", "regress.value"), 2);
  EXPECT_EQ(number_in(document, "exact", "regress.value"), 0.9294117647058824);
  try {
    number_in(document, "age", "regress.value");
    FAIL() << "it is no number";
  } catch (const base::Error& error) {
    EXPECT_STREQ(error.what(), "no number 'age' (regress.value) in the sample's json");
    EXPECT_EQ(error.fix(), "it has age, height, exact");
  }
}

}  // namespace
}  // namespace lockstep::task
