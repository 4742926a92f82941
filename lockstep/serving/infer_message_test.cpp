// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/infer_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::serving {
namespace {

using base::text;
using testing::HasSubstr;

web::Request binary_request(const std::string& json, const std::string& bytes) {
  web::Request request{"POST", "/v2/models/m/infer"};
  request.headers = {{"inference-header-content-length", std::to_string(json.size())}};
  request.body = json + bytes;
  return request;
}

web::Request json_request(const std::string& json) {
  web::Request request{"POST", "/v2/models/m/infer"};
  request.body = json;
  return request;
}

std::string complaint(const web::Request& request) {
  try {
    read_infer(request);
    return "";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
}

std::string floats(std::vector<float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(InferMessageTest, ReadsJson) {
  const auto infer = read_infer(json_request(
      R"({"id": "7", "inputs": [{"name": "image", "shape": [1, 2], "datatype": "FP32", "data": [[0.5, 2]]}],
          "outputs": [{"name": "probabilities", "parameters": {"binary_data": true}}, {"name": "record"}]})"));
  EXPECT_EQ(infer.id, "7");
  EXPECT_EQ(infer.inputs, (std::vector<InferTensor>{{"image", "FP32", {1, 2}, {0.5, 2}, {}}}));
  EXPECT_TRUE(infer.is_binary("probabilities"));
  EXPECT_FALSE(infer.is_binary("record"));
}

TEST(InferMessageTest, ReadsBinaryTensorsInTheirOrder) {
  const std::string json =
      R"({"parameters": {"binary_data_output": true}, "inputs": [
          {"name": "a", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}},
          {"name": "b", "shape": [2], "datatype": "BYTES", "parameters": {"binary_data_size": 11}}]})";
  const auto infer = read_infer(binary_request(json, floats({1, 2}) + std::string("\3\0\0\0abc\0\0\0\0", 11)));
  EXPECT_EQ(infer.inputs[0].numbers, (std::vector<float>{1, 2}));
  EXPECT_EQ(infer.inputs[1].words, (std::vector<std::string>{"abc", ""}));
  EXPECT_TRUE(infer.is_binary("anything"));
}

// Shapes that other servers took: too many elements, sizes that overflow, lengths beyond the body (CVE-2026-24173 and
// CVE-2025-33201 of Triton).
TEST(InferMessageTest, WhatIsSaidMustBeWhatCame) {
  const auto with = [](const std::string& shape, const std::string& type, const std::string& rest) {
    return text(R"({"inputs": [{"name": "image", "shape": )", shape, R"(, "datatype": ")", type, R"(", )", rest, "}]}");
  };
  const auto says = [&](const web::Request& request, const char* words) {
    EXPECT_THAT(complaint(request), HasSubstr(words));
  };
  says(json_request("{"), "request:1:2");
  says(json_request("[]"), "an object");
  says(json_request("{}"), "inputs");
  says(json_request(R"({"inputs": [{"name": "image"}]})"), "datatype");
  says(json_request(with("[2]", "FP32", R"("data": [1])")), "1 elements came, its shape has 2");
  says(json_request(with("[-1]", "FP32", R"("data": [1])")), "negative");
  says(json_request(with("[4294967296, 4294967296]", "FP32", R"("data": [])")), "more than");
  says(json_request(with("[9223372036854775807, 2]", "FP32", R"("data": [])")), "more than");
  says(json_request(with("[1]", "INT64", R"("data": [1])")), "datatype INT64 is not taken");
  says(json_request(with("[1]", "FP32", R"("data": ["a"])")), "not of datatype FP32");
  says(json_request(with("[1]", "BYTES", R"("data": [1])")), "not of datatype BYTES");
  says(json_request(with("[1]", "FP32", R"("x": 1)")), "either data or binary_data_size");
  const std::string one = with("[1]", "FP32", R"("parameters": {"binary_data_size": 4})");
  EXPECT_EQ(complaint(binary_request(one, floats({1}))), "");
  says(json_request(with("[1]", "FP32", R"("d\u0061ta": 7)")), "data is no array");
  says(json_request(with("[1]", "FP32", R"("d\u0061ta": -1)")), "data is no array");
  says(json_request(with("[1]", "FP32", R"("d\u0061ta": [1])")), "integer");
  says(json_request(with("[1]", "FP32", R"("data": [1e39])")), "not finite");
  for (const float value : {INFINITY, -INFINITY, NAN}) says(binary_request(one, floats({value})), "not finite");
  says(binary_request(one, ""), "more than the body has");
  says(binary_request(one, floats({1, 2})), "behind the last");
  says(binary_request(with("[1]", "FP32", R"("parameters": {"binary_data_size": -4})"), floats({1})), "more than");
  says(binary_request(with("[2]", "FP32", R"("parameters": {"binary_data_size": 4})"), floats({1})), "elements of 4");
  says(binary_request(with("[1]", "BYTES", R"("parameters": {"binary_data_size": 4})"), "\xff\xff\xff\xff"),
       "longer than");
  says(binary_request(with("[1]", "BYTES", R"("parameters": {"binary_data_size": 2})"), "ab"), "within a length");
  for (const char* length : {"0", "-1", "99999", "1x", "", "99999999999999999999999"}) {
    web::Request request = json_request(one);
    request.headers = {{"Inference-Header-Content-Length", length}};
    says(request, "Inference-Header-Content-Length");
  }
}

TEST(InferMessageTest, BoundsWhatIsAskedFor) {
  std::string outputs;
  for (int i = 0; i < 100; ++i) outputs += text(i == 0 ? "" : ",", R"({"name": "o"})");
  EXPECT_THAT(complaint(json_request(text(R"({"inputs": [], "outputs": [)", outputs, "]}"))), HasSubstr("too many"));
  // Deep nesting and a long document end with words, not with the stack.
  EXPECT_NE(complaint(json_request(std::string(100000, '['))), "");
  EXPECT_NE(complaint(json_request(R"({"inputs": [], "id": ")" + std::string(2 << 20, 'a') + "\"}")), "");
}

TEST(InferMessageTest, WritesJsonAndBinary) {
  const InferAnswer answer{"m", "v", {{"p", "FP32", {1, 2}, {0.25, 0.75}, {}}, {"r", "BYTES", {1}, {}, {"{}"}}}};
  const auto plain = write_infer({.id = "7"}, answer);
  const auto said = base::parse_json(plain.body, "answer");
  EXPECT_EQ(said.at("id").as_string(), "7");
  EXPECT_EQ(said.at("outputs").items()[0].at("data").items()[1].as_double(), 0.75);
  EXPECT_EQ(said.at("outputs").items()[1].at("data").items()[0].as_string(), "{}");
  const auto packed = write_infer({.outputs = {{"p", true}}}, answer);
  const std::string* length = web::find_value(packed.headers, "Inference-Header-Content-Length");
  ASSERT_TRUE(length);
  const std::string bytes = packed.body.substr(std::stoul(*length));
  EXPECT_EQ(bytes, floats({0.25, 0.75}));
}

}  // namespace
}  // namespace lockstep::serving
