// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TableSourceTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content = "x") {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  std::unique_ptr<Source> open(const std::string& name, SourceOptions options = {}) const {
    options.path = folder_.path() / name;
    EXPECT_TRUE(looks_like_table(options));
    return open_table(options);
  }
  base::TemporaryFolder folder_;
  std::string image_ = image::encode_png(image::Image(30, 20));
  int64_t size_ = static_cast<int64_t>(image_.size());
};

TEST_F(TableSourceTest, KeepsFurtherColumnsAndParts) {
  put("images/a.jpg", image_);
  put("images/b.jpg", image_);
  put("list.csv",
      "path,label,age,split,note\na.jpg,10,7,train,\"x, y\"\nb.jpg,9,2.5,val,\nc.jpg,9,1,val,\n../d.jpg,9,1,val,\n");
  const auto source = open("list.csv");
  EXPECT_THAT(source->classes(), ElementsAre("9", "10"));
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"a.jpg", 1, Part::train, size_},
                                             SourceSample{"b.jpg", 0, Part::validate, size_}));
  EXPECT_THAT(source->load(0), ElementsAre(SourceMember{"", image_},
                                           SourceMember{"json", R"({"age":7,"note":"x, y","width":30,"height":20})"}));
  EXPECT_EQ(source->load(1)[1].bytes, R"({"age":2.5,"note":"","width":30,"height":20})");
  ASSERT_EQ(source->refused().size(), 2u);
  EXPECT_THAT(source->refused()[0].reason, HasSubstr("list.csv:4: c.jpg: there is no such file"));
  EXPECT_THAT(source->refused()[1].reason, HasSubstr("leads out of the folder"));
}

TEST_F(TableSourceTest, SaysThatLabelsLookLikeThoseOfAnotherTask) {
  put("a.jpg", image_);
  put("b.jpg", image_);
  put("ages.csv", "image,age\na.jpg,1.5\nb.jpg,3\n");
  EXPECT_THAT(open("ages.csv")->notes(), ElementsAre(HasSubstr("\"1.5\" too; numbers to be learnt")));
  put("tags.csv", "image,tags\na.jpg,cat|dog\nb.jpg,cat\n");
  EXPECT_THAT(open("tags.csv")->notes(), ElementsAre(HasSubstr("\"cat|dog\" too")));
  put("plain.csv", "image,label\na.jpg,St. Bernard\nb.jpg,3\n");
  EXPECT_THAT(open("plain.csv")->notes(), ElementsAre());
  put("flags.csv", "image,cat,dog\na.jpg,1,0\nb.jpg,1,1\n");
  try {
    open("flags.csv");
    FAIL() << "took a column";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("--label-column none, then task regress or multilabel"));
  }
}

TEST_F(TableSourceTest, FindsTheImagesThoughTheFirstIsGone) {
  put("images/b.jpg", image_);
  put("list.csv", "path,label\na.jpg,1\nb.jpg,2\n");
  const auto source = open("list.csv");
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"b.jpg", 1, Part::open, size_}));
  ASSERT_EQ(source->refused().size(), 1u);
  EXPECT_EQ(source->refused()[0].name, "a.jpg");
}

TEST_F(TableSourceTest, SaysThatTheListWritesBackslashes) {
  put("im/a.jpg", image_);
  put("list.csv", "path,label\nim\\a.jpg,1\n");
  for (const char* images : {"", "im"}) {
    try {
      open("list.csv", {.path = "", .images = *images ? folder_.path() / images : ""});
      FAIL() << "found";
    } catch (const base::Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("the list writes \\ between folders"));
      EXPECT_THAT(error.message(), HasSubstr("fix: write /"));
    }
  }
}

TEST_F(TableSourceTest, AsksWhetherRowsThatAreAllDifferentAreCaptions) {
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg"}) put(name, image_);
  put("list.tsv", "a.jpg\tred car\nb.jpg\tblue car\nc.jpg\told dog\n");
  try {
    open("list.tsv");
    FAIL() << "three classes";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("as many classes as rows, 3"));
    EXPECT_THAT(error.message(), HasSubstr("--format captions"));
  }
  EXPECT_EQ(open("list.tsv", {.path = "", .format = "table"})->classes().size(), 3u);
  put("list.tsv", "a.jpg\t1\nb.jpg\t2\nc.jpg\t3\n");
  EXPECT_EQ(open("list.tsv")->classes().size(), 3u);
}

TEST_F(TableSourceTest, SaysThatPathsLeadOutOfTheListsFolder) {
  put("lists/list.csv", "path,label\n../img/a.jpg,1\n");
  put("img/a.jpg", image_);
  try {
    open("lists/list.csv");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"../img/a.jpg\": it leads out of the folder of the list"));
    EXPECT_THAT(error.fix(), HasSubstr("absolute, with --images /"));
  }
  put("lists/absolute.csv", "path,label\n" + (folder_.path() / "img/a.jpg").string() + ",1\n");
  SourceOptions options;
  options.images = "/";
  EXPECT_EQ(open("lists/absolute.csv", options)->samples().size(), 1u);
}

TEST_F(TableSourceTest, ListsOfAFolderShareTheHeaderOfTheFirst) {
  for (const char* name : {"images/1/a.jpg", "images/1/b.jpg"}) put(name, image_);
  put("training.csv", "subDirectory_filePath,face_x,expression,valence\n1/a.jpg,4,1,0.5\n");
  put("validation.csv", "1/b.jpg,5,0,-0.5\n");
  const auto source = open("");
  ASSERT_EQ(source->samples().size(), 2u);
  EXPECT_EQ(source->samples()[1], (SourceSample{"1/b.jpg", 0, Part::validate, size_}));
  EXPECT_EQ(source->load(1)[1].bytes, R"({"face_x":5,"valence":-0.5,"width":30,"height":20})");
}

TEST_F(TableSourceTest, RefusesAPartThatItDoesNotKnow) {
  put("a.jpg", "A");
  put("list.csv", "path,label,split\na.jpg,1,train\na.jpg,1,holdout\n");
  try {
    open("list.csv");
    FAIL() << "held out, and trained on";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("list.csv:3: \"holdout\" is no part"));
  }
  SourceOptions options;
  options.part_column = "none";
  EXPECT_EQ(open("list.csv", options)->samples()[0].part, Part::open);
}

TEST_F(TableSourceTest, TakesAbsoluteNamesBelowTheImages) {
  put("a.jpg", "A");
  put("list.csv",
      base::text("path,label\n", std::filesystem::canonical(folder_.path() / "a.jpg").string(), ",1\n/etc/b.jpg,1\n"));
  const auto source = open("list.csv");
  EXPECT_EQ(source->load(0)[0].bytes, "A");
  ASSERT_EQ(source->refused().size(), 1u);
  EXPECT_THAT(source->refused()[0].reason, HasSubstr("leads out of the folder"));
}

TEST_F(TableSourceTest, ACellThatANumberWouldChangeStaysText) {
  put("a.jpg", image_);
  put("list.csv",
      "path,label,id,code,none,big,zero,less,exact\n"
      "a.jpg,1,1234567890123456789,00123,Nan,1e999,0,-12,0.25\n");
  EXPECT_EQ(
      open("list.csv")->load(0)[1].bytes,
      R"({"id":"1234567890123456789","code":"00123","none":"Nan","big":"1e999","zero":0,"less":-12,"exact":0.25,"width":30,"height":20})");
}

TEST_F(TableSourceTest, KeepsASizeThatTheTableSays) {
  put("a.jpg", image_);
  put("list.csv", "path,label,width\na.jpg,1,60\n");
  EXPECT_EQ(open("list.csv")->load(0)[1].bytes, R"({"width":60,"height":20})");
}

TEST_F(TableSourceTest, ReadsTheLayoutOfAffectNet) {
  put("Manually_Annotated_Images/12/x.jpg", image_);
  const std::string header = "subDirectory_filePath,face_x,face_y,expression,valence,arousal\n";
  put("training.csv", header + "12/x.jpg,1,2,3,-0.5,0.25\n12/x.jpg,1,2,9,-2,-2\n");
  put("validation.csv", header + "12/x.jpg,1,2,0,0.1,0.2\n");
  const auto source = open("");
  EXPECT_EQ(source->classes().size(), 8u);
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"12/x.jpg", 3, Part::train, size_},
                                             SourceSample{"12/x.jpg", 0, Part::validate, size_}));
  EXPECT_EQ(source->load(0)[1].bytes,
            R"({"face_x":1,"face_y":2,"valence":-0.5,"arousal":0.25,"width":30,"height":20})");
  EXPECT_THAT(source->refused(), ElementsAre(Refused{"12/x.jpg", "label 9 is none of the classes"}));
}

TEST_F(TableSourceTest, ReadsTheLayoutOfRafDb) {
  put("basic/Image/aligned/train_00001_aligned.jpg");
  put("basic/Image/aligned/test_0001_aligned.jpg");
  put("basic/EmoLabel/list_patition_label.txt", "train_00001.jpg 5\ntest_0001.jpg 1\n");
  const auto source = open("basic");
  EXPECT_EQ(source->classes()[4], "Sadness");
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"aligned/train_00001_aligned.jpg", 4, Part::train, 1},
                                             SourceSample{"aligned/test_0001_aligned.jpg", 0, Part::test, 1}));
  EXPECT_EQ(source->load(0).size(), 1u);
}

TEST_F(TableSourceTest, AsksWhenTheColumnsAreNotClear) {
  put("a.jpg");
  put("list.tsv", "a.jpg\t1\t2\n");
  EXPECT_THROW(open("list.tsv"), base::Error);
  SourceOptions third;
  third.label_column = "3";
  EXPECT_EQ(open("list.tsv", third)->classes(), std::vector<std::string>{"2"});
  put("other.csv", "picture,kind\nmissing.jpg,1\n");
  EXPECT_THROW(open("other.csv"), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
