// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/caption_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::task {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CaptionEncoderTest : public testing::Test {
 protected:
  CaptionEncoderTest() {
    job_.task = spec::Task::caption;
    job_.data.image_size = 4;
    job_.caption.length = 4;
    words_ = std::make_shared<Vocabulary>(std::vector<std::string>{"<pad>", "<start>", "<end>", "<unk>", "a", "cat"});
    file_ = image::encode_png(image::Image(6, 5));
  }
  static std::span<const std::byte> bytes(const std::string& file) {
    return std::as_bytes(std::span(file.data(), file.size()));
  }
  void encode(const std::string& json, const std::optional<base::Random>& random) {
    encoder_ = make_caption_encoder(job_, words_);
    std::vector<std::byte*> out{reinterpret_cast<std::byte*>(pixels_.data()),
                                reinterpret_cast<std::byte*>(tokens_.data()), reinterpret_cast<std::byte*>(&length_)};
    encoder_->encode({0, bytes(file_), {bytes(json)}}, random, out);
  }

  spec::Job job_;
  std::shared_ptr<const Vocabulary> words_;
  std::string file_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<float> pixels_ = std::vector<float>(4 * 4 * 3);
  std::vector<int64_t> tokens_ = std::vector<int64_t>(4);
  int64_t length_ = 0;
};

TEST_F(CaptionEncoderTest, TheFirstCaptionCountsAndAllAreKept) {
  encode(R"({"captions": ["A cat.", "A big cat"]})", std::nullopt);
  EXPECT_THAT(tokens_, ElementsAre(4, 5, kEndWord, kPadWord));
  EXPECT_EQ(length_, 3);
  const base::Json about = base::parse_json(encoder_->annotation(), "annotation");
  EXPECT_EQ(about.at("captions").items()[1].as_string(), "a big cat");
  EXPECT_EQ(about.at("width").as_int(), 6);
}

TEST_F(CaptionEncoderTest, TrainingDrawsOne) {
  std::set<int64_t> lengths;
  for (uint64_t i = 0; i < 20; ++i) {
    encode(R"({"captions": ["A cat.", "cat", "!"]})", base::Random(1, 0, i));
    lengths.insert(length_);
  }
  EXPECT_THAT(lengths, ElementsAre(2, 3));
}

TEST_F(CaptionEncoderTest, ACaptionWithoutAWordIsNamed) {
  try {
    encode(R"({"captions": ["", " ... "]})", std::nullopt);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no caption with a word"));
  }
}

}  // namespace
}  // namespace lockstep::task
