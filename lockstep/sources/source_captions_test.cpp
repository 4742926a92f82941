// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_captions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
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

TEST_F(CaptionSourceTest, FindsTheListOfAFolder) {
  const SourceOptions options{.path = folder_.path()};
  EXPECT_FALSE(looks_like_captions(options));
  put("captions.json", R"([{"image": "a.jpg", "caption": "one"}])");
  EXPECT_TRUE(looks_like_captions(options));
  EXPECT_EQ(open_source(options).format, "captions");
  EXPECT_EQ(open_captions(options)->load(0)[1].bytes, R"({"captions":["one"]})");
  put("captions.csv", "image,caption\na.jpg,one\n");
  EXPECT_FALSE(looks_like_captions(options)) << "which of the two?";
}

TEST_F(CaptionSourceTest, PutsCaptionsOfAnImageTogetherInEveryLayout) {
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

TEST_F(CaptionSourceTest, KeepsPartsAndNamesMissingImages) {
  put("x.json", R"([{"image": "a.jpg", "split": "val", "caption": "x"}, {"image": "lost.jpg", "caption": "x"}])");
  const auto source = open_captions({.path = folder_.path() / "x.json"});
  ASSERT_EQ(source->samples().size(), 1u);
  EXPECT_EQ(source->samples()[0].part, Part::validate);
  EXPECT_EQ(source->refused()[0].name, "lost.jpg");
}

TEST_F(CaptionSourceTest, TakesPartsOfATableAndWholeCaptions) {
  put("x.tsv", "image\tcaption\tsplit\na.jpg\tone\ttest\nb.jpg\ttwo\ttrain\n");
  const auto source = open_captions({.path = folder_.path() / "x.tsv"});
  EXPECT_EQ(source->samples()[0].part, Part::test);
  EXPECT_EQ(source->samples()[1].part, Part::train);
  put("x.tsv", "image\tcaption\tsplit\na.jpg\tone\tsecret\n");
  EXPECT_THROW(open_captions({.path = folder_.path() / "x.tsv"}), base::Error);
  EXPECT_EQ(captions("y.csv", "image,caption\na.jpg,A dog, running\n"),
            (std::vector<std::string>{R"({"captions":["A dog, running"]})"}));
  put("z.csv", "caption,image\nA dog, running,a.jpg\n");
  EXPECT_THROW(open_captions({.path = folder_.path() / "z.csv"}), base::Error);
}

TEST_F(CaptionSourceTest, LabelsWinAndSentencesAreNoClasses) {
  put("t.csv", "path,label,comment\na.jpg,1,looks fine to me\n");
  EXPECT_FALSE(looks_like_captions({.path = folder_.path() / "t.csv"}));
  EXPECT_EQ(captions("s.tsv", "a.jpg\ta dog on the grass\nb.jpg\ta cat in the house\n").size(), 2u);
  put("c.tsv", "a.jpg\tdog\nb.jpg\tgolden retriever\n");
  EXPECT_FALSE(looks_like_captions({.path = folder_.path() / "c.tsv"}));
}

TEST_F(CaptionSourceTest, NamesImagesWithoutACaption) {
  put("x.json", R"([{"image": "a.jpg", "captions": []}, {"image": "b.jpg", "captions": ["x"]}])");
  const auto source = open_captions({.path = folder_.path() / "x.json"});
  EXPECT_EQ(source->samples().size(), 1u);
  EXPECT_EQ(source->refused(), (std::vector<Refused>{{"a.jpg", "it has no caption"}}));
}

TEST_F(CaptionSourceTest, KeepsALineAsItIsWritten) {
  EXPECT_EQ(captions("x.csv", "image,caption\na.jpg,A dog , in the  house,alone\n"),
            (std::vector<std::string>{R"({"captions":["A dog , in the  house,alone"]})"}));
  EXPECT_EQ(captions("x.tsv", "image\tnote\tcaption\na.jpg\t\tA dog\trunning\n"),
            (std::vector<std::string>{R"({"captions":["A dog\trunning"]})"}));
}

TEST_F(CaptionSourceTest, NamesAShortLineAndTakesTheOthers) {
  put("x.tsv", "image\tcaption\na.jpg\tone\nb.jpg\n");
  const auto source = open_captions({.path = folder_.path() / "x.tsv"});
  EXPECT_EQ(source->samples().size(), 1u);
  EXPECT_EQ(source->refused(), (std::vector<Refused>{{(folder_.path() / "x.tsv:3").string(), "too few columns"}}));
}

TEST_F(CaptionSourceTest, NamesThePlaceOfWhatIsNoCaption) {
  try {
    captions("x.jsonl", "{\"image\": \"a.jpg\", \"caption\": \"one\"}\n{\"image\": \"b.jpg\", \"caption\": 5}\n");
    FAIL() << "taken";
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("x.jsonl:2:"), std::string::npos) << error.what();
    EXPECT_NE(error.message().find("fix: correct or remove this entry"), std::string::npos) << error.message();
  }
}

TEST_F(CaptionSourceTest, RefusesEntriesWithoutAnImage) {
  EXPECT_THROW(captions("x.json", R"([{"caption": "x"}])"), base::Error);
  EXPECT_THROW(captions("x.json", R"([1])"), base::Error);
  EXPECT_THROW(captions("x.json", R"([])"), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
