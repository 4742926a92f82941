// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::weights {
namespace {

std::string safetensors_bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string content(sizeof length, '\0');
  std::memcpy(content.data(), &length, sizeof length);
  return content + header + std::string(data_bytes, 'x');
}

std::string safetensors_complaint(const std::string& header, size_t data_bytes) {
  const std::string content = safetensors_bytes(header, data_bytes);
  try {
    parse_safetensors(std::as_bytes(std::span(content.data(), content.size())), "w.safetensors");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "accepted";
}

TEST(SafetensorsTest, ReadsWhatItWroteWhateverTheOrderGiven) {
  const base::TemporaryFolder folder;
  const float values[] = {1, 2, 3, 4, 5, 6};
  const int64_t count = 7;
  const TensorView matrix{"b", Dtype::F32, {2, 3}, std::as_bytes(std::span(values))};
  const TensorView scalar{"a \"quoted\" name", Dtype::I64, {}, std::as_bytes(std::span(&count, 1))};
  const TensorView empty{"empty", Dtype::F32, {0, 5}, {}};
  write_safetensors(folder.path() / "1", std::vector{matrix, scalar, empty}, {{"step", "3"}});
  write_safetensors(folder.path() / "2", std::vector{empty, scalar, matrix}, {{"step", "3"}});
  EXPECT_EQ(base::read_file(folder.path() / "1"), base::read_file(folder.path() / "2"));

  const SafetensorsFile file(folder.path() / "1");
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.metadata().at("step"), "3");
  const TensorView* found = file.find("b");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(found->bytes.data(), values, sizeof values), 0);
  EXPECT_EQ(file.find("a \"quoted\" name")->dtype, Dtype::I64);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(SafetensorsTest, AlignsTheData) {
  const base::TemporaryFolder folder;
  for (const char* name : {"n", "na", "nam", "name"}) {
    write_safetensors(folder.path() / "w", std::vector{TensorView{name, Dtype::U8, {0}, {}}});
    EXPECT_EQ(base::read_file(folder.path() / "w").size() % 8, 0U);
  }
}

TEST(SafetensorsTest, AcceptsBlanksAndAnyKeyOrder) {
  EXPECT_EQ(safetensors_complaint("{ \"t\" : { \"data_offsets\":[0, 4], \"shape\":[1] ,\"dtype\":\"F32\"} }  \n", 4),
            "accepted");
  EXPECT_EQ(safetensors_complaint("{}", 0), "accepted");
}

struct BadHeader {
  const char* header;
  size_t data_bytes;
  const char* complaint;
};

TEST(SafetensorsTest, NamesWhatIsWrongWithAFile) {
  const BadHeader cases[] = {
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "appears twice"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "leaves a hole"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
       6, "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "overlaps"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 9, "5 bytes behind the last tensor"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 12, "cut short"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "4 bytes, which is not F32 [2]"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0, "which is not F32"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole number"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "is expected"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "leaves a hole"},
      {R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", 4, "unknown type \"F31\""},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"run":"me"}})", 4, "unexpected key \"run\""},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "lacks"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},})", 4, "a string is expected"},
      {R"({"__metadata__":{"n":1}})", 0, "a string is expected"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}} x)", 4, "behind the header's end"},
      {R"([])", 0, "does not start with"},
      {"{\"\xff\":1}", 0, "UTF-8"},
      {R"({"a)", 0, "never ends"},
      {R"({"a\)", 0, "never ends"},
      {R"({)", 0, "a string is expected"},
  };
  for (const BadHeader& bad : cases) {
    EXPECT_THAT(safetensors_complaint(bad.header, bad.data_bytes), testing::HasSubstr(bad.complaint)) << bad.header;
  }
}

TEST(SafetensorsTest, RejectsEveryTruncation) {
  const std::string whole = safetensors_bytes(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3);
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto bytes = std::as_bytes(std::span(whole.data(), size));
    EXPECT_THROW(parse_safetensors(bytes, "cut"), base::Error) << size;
  }
}

TEST(SafetensorsTest, RefusesAHeaderAbove100MB) {
  std::string content = safetensors_bytes("{}", 0);
  const uint64_t length = UINT64_MAX - 4;
  std::memcpy(content.data(), &length, sizeof length);
  EXPECT_THROW(parse_safetensors(std::as_bytes(std::span(content.data(), content.size())), "huge"), base::Error);
}

TEST(SafetensorsTest, RefusesToWriteNonsense) {
  const base::TemporaryFolder folder;
  const float value = 1;
  const TensorView good{"a", Dtype::F32, {1}, std::as_bytes(std::span(&value, 1))};
  TensorView wrong = good;
  wrong.shape = {2};
  TensorView twin{"a", Dtype::I32, {1}, good.bytes};
  EXPECT_THROW(write_safetensors(folder.path() / "w", std::vector{wrong}), base::Error);
  EXPECT_THROW(write_safetensors(folder.path() / "w", std::vector{good, twin}), base::Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "w"));
}

}  // namespace
}  // namespace lockstep::weights
