// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/source_captions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

class CaptionSourceTest : public testing::Test {
 protected:
  CaptionSourceTest() {
    put("images/a.jpg", "A");
    put("images/b.jpg", "B");
  }
  void put(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  // The .json members, in order.
  std::vector<std::string> captions(const std::string& name, const std::string& content) {
    put(name, content);
    const SourceOptions options{.path = folder_.path() / name};
    EXPECT_TRUE(looks_like_captions(options)) << name;
    const auto source = open_captions(options);
    std::vector<std::string> all;
    for (size_t i = 0; i < source->samples().size(); ++i) all.push_back(source->load(static_cast<int64_t>(i))[1].bytes);
    return all;
  }
  base::TemporaryFolder folder_;
};

TEST_F(CaptionSourceTest, PutsCaptionsOfAPictureTogetherInEveryLayout) {
  const std::vector<std::string> expected{R"({"captions":["one","two"]})", R"({"captions":["three"]})"};
  EXPECT_EQ(captions("x.tsv", "image\tcaption\na.jpg\tone\nb.jpg\tthree\na.jpg\ttwo\n"), expected);
  EXPECT_EQ(captions("captions.txt", "image,caption\na.jpg,one\na.jpg,two\nb.jpg,three\n"), expected);
  EXPECT_EQ(captions("Flickr8k.token", "a.jpg#0\tone\na.jpg#1\ttwo\nb.jpg#0\tthree\n"), expected);
  EXPECT_EQ(
      captions("results.csv", "image_name| comment_number| comment\na.jpg| 0| one\na.jpg| 1| two\nb.jpg| 0| three\n"),
      expected);
  EXPECT_EQ(
      captions("x.json", R"([{"image": "a.jpg", "caption": ["one", "two"]}, {"image": "b.jpg", "caption": "three"}])"),
      expected);
  EXPECT_EQ(captions("x.jsonl",
                     "{\"image\": \"a.jpg\", \"caption\": \"one\"}\n\n{\"image\": \"a.jpg\", \"caption\": "
                     "\"two\"}\n{\"file_name\": \"b.jpg\", \"text\": \"three\"}"),
            expected);
  EXPECT_EQ(
      captions(
          "dataset.json",
          R"({"images": [{"filename": "a.jpg", "split": "train", "sentences": [{"raw": "one"}, {"raw": "two"}]}, {"filename": "b.jpg", "split": "val", "sentences": [{"raw": "three"}]}]})"),
      expected);
}

TEST_F(CaptionSourceTest, KeepsPartsAndNamesMissingPictures) {
  put("x.json", R"([{"image": "a.jpg", "split": "val", "caption": "x"}, {"image": "lost.jpg", "caption": "x"}])");
  const auto source = open_captions({.path = folder_.path() / "x.json"});
  ASSERT_EQ(source->samples().size(), 1u);
  EXPECT_EQ(source->samples()[0].part, Part::validate);
  EXPECT_EQ(source->refused()[0].name, "lost.jpg");
}

TEST_F(CaptionSourceTest, RefusesEntriesWithoutAPicture) {
  EXPECT_THROW(captions("x.json", R"([{"caption": "x"}])"), base::Error);
  EXPECT_THROW(captions("x.json", R"([1])"), base::Error);
  EXPECT_THROW(captions("x.json", R"([])"), base::Error);
}

}  // namespace
}  // namespace lockstep::data
