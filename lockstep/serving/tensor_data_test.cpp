// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/tensor_data.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::serving {
namespace {

TEST(TensorDataTest, TakesTheValuesOfTensorsOutOfTheText) {
  const auto lifted = lift_tensor_data(
      R"({"id": "a\"data\"", "inputs": [{"name": "x", "data" : [[1, -2.5e1],[ ]], "s": [2]}, {"data":["a\n","\u00e9"]}]})");
  EXPECT_EQ(lifted.document, R"({"id": "a\"data\"", "inputs": [{"name": "x", "data":0, "s": [2]}, {"data":1}]})");
  ASSERT_EQ(lifted.data.size(), 2U);
  EXPECT_EQ(lifted.data[0].numbers, (std::vector<float>{1, -25}));
  EXPECT_EQ(lifted.data[1].words, (std::vector<std::string>{"a\n", "\xc3\xa9"}));
}

TEST(TensorDataTest, LeavesOtherThingsAlone) {
  for (const char* text : {"", "{", "[1, 2", R"({"data": [1]})", R"({"inputs": [{"parameters": {"data": [1]}}]})",
                           R"(["data", "data)", "\"", R"({"inputs": [{"data"}]})"}) {
    EXPECT_EQ(lift_tensor_data(text).document, text);
  }
}

TEST(TensorDataTest, RefusesWhatIsNoData) {
  for (const char* data :
       {"1",     "\"a\"", "{}",      "[1",        "[1,",    "[,1]",   "[1 2]",          "[1,]",
        "[nan]", "[inf]", "[+1]",    "[true]",    "[null]", "[{}]",   "[1, \"a\"]",     "[[[[[[[[[1]]]]]]]]]",
        "[\"a]", "[-]",   "[1e999]", "[\"\\q\"]", "[-inf]", "[-nan]", "[1, -infinity]", "[-"}) {
    EXPECT_THROW(lift_tensor_data(std::string(R"({"inputs": [{"data": )") + data + "}]}"), base::Error) << data;
  }
}

}  // namespace
}  // namespace lockstep::serving
