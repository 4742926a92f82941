// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/data_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/shards/small_shards.h"

namespace lockstep::loader {
namespace {

class DataLinesTest : public testing::Test {
 protected:
  void put(const std::string& name) {
    const base::Path path = folder_.path() / name;
    base::make_folders(path.parent_path());
    base::write_file(path, "x");
  }
  std::string root(const std::string& part) const { return (folder_.path() / part).string(); }

  base::TemporaryFolder folder_;
};

TEST_F(DataLinesTest, SayWhatIsReadLeftOutAndMissing) {
  for (const char* name : {"train/cat/1.jpg", "train/cat/2.webp", "train/cat/notes.txt", "train/dog/1.tif",
                           "train/lying_about.jpg", "train/owl/1.jpg", "val/cat/1.png"}) {
    put(name);
  }
  Collections all{scan_folder(root("train")), {}};
  EXPECT_EQ(data_lines(all).back(), "validation: none (data.validate is empty)");
  all.validate = scan_folder(root("val"), all.train.classes);
  EXPECT_EQ(data_lines(all),
            (std::vector<std::string>{
                "training: 4 images in " + root("train") + ": cat 2, dog 1, owl 1",
                "  left out there: 2 files that are not named as an image in a class folder, such as " +
                    root("train/lying_about.jpg"),
                "validation: 1 images in " + root("val") + ": cat 1, dog 0, owl 0",
                "  validation has no image of 2 classes (dog, owl): nothing is said of how well they are told"}));
}

TEST_F(DataLinesTest, NameAConverterOfWhatPhonesWrite) {
  put("train/cat/1.jpg");
  put("train/cat/2.heic");
  put("train/cat/.ignored");
  put("train/album.txt");
  const std::string line = data_lines({scan_folder(root("train")), {}})[1];
  EXPECT_NE(line.find("such as " + root("train/cat/2.heic") + "; convert such files: heif-convert"), std::string::npos)
      << line;
}

TEST_F(DataLinesTest, SayWhatCannotBeLearnt) {
  Collections all{synthetic_collection(20, 10), synthetic_collection(20, 10)};
  all.train.samples.resize(18);  // none of the last class
  const std::vector<std::string> lines = data_lines(all);
  EXPECT_EQ(lines[0], "training: 18 synthetic samples: 10 classes, of 0 to 2 each");
  EXPECT_EQ(lines.back(), "  training has no image of 1 class (class9): they cannot be learnt");
}

TEST_F(DataLinesTest, SayHowManyObjectsAnImageHas) {
  const shards::SmallShards small;
  shards::ShardList list = shards::read_shard_list(small.folder.path());
  list.most_objects = 7;
  shards::write_shard_list(small.folder.path(), list);
  const Collections all{scan_images(small.folder.path().string()), {}};
  EXPECT_EQ(data_lines(all)[0],
            "training: 5 images in " + small.folder.path().string() + ": 2 classes of objects, at most 7 in an image");
  EXPECT_EQ(data_lines(all, 7).size(), 2U);
  EXPECT_EQ(data_lines(all, 6)[1], "  an image has up to 7 objects, slots are there for 6: the largest are learnt");
}

TEST_F(DataLinesTest, SayWhichWordsAreNotInTheVocabulary) {
  put("val/1.jpg");
  Collections all{synthetic_collection(4, 2), scan_images(root("val"))};
  all.train.classes = {"<pad>", "<start>", "<end>", "<unk>", "a", "cat"};
  all.train.labelled = false;
  all.validate->classes.clear();
  const std::string head = "validation: 1 images in " + root("val");
  EXPECT_EQ(data_lines(all).back(), head) << "nothing was counted";
  base::write_file(folder_.path() / "val/words.csv", "word,count\na,9\ncat,2\n");
  EXPECT_EQ(data_lines(all).back(), head);
  base::write_file(folder_.path() / "val/words.csv", "word,count\na,13\nzebra,4\ncat,2\nyak,1\n");
  EXPECT_EQ(data_lines(all).back(),
            "  of its words 25.0 % (5 of 20) are not in the vocabulary, each is <unk>: zebra, yak");
  base::write_file(folder_.path() / "val/words.csv", "word,count\nb,1\nc,1\nd,1\ne,1\nf,1\ng,1\nh,1\ni,1\nj,1\n");
  EXPECT_THAT(
      data_lines(all).back(),
      testing::EndsWith("100.0 % (9 of 9) are not in the vocabulary, each is <unk>: b, c, d, e, f, g, h, i, ..."));
}

TEST_F(DataLinesTest, AFilesNameCannotForgeALine) {
  EXPECT_EQ(on_one_line("a b.jpg"), "a b.jpg");
  EXPECT_EQ(on_one_line("a\nb.jpg"), "\"a\\nb.jpg\"");
}

}  // namespace
}  // namespace lockstep::loader
