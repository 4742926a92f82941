// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

class ImageFolderTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content = "x") {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  std::unique_ptr<Source> open() const { return open_image_folder({.path = folder_.path()}); }
  base::TemporaryFolder folder_;
};

TEST_F(ImageFolderTest, TakesSubFoldersAsSortedClasses) {
  put("dog/b.JPG", "dog b");
  put("cat/deep/a.png", "cat a");
  put("cat/notes.txt");
  put("stray.jpg");
  const auto source = open();
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(source->samples(),
            (std::vector<SourceSample>{{"cat/deep/a.png", 0, Part::open, 5}, {"dog/b.JPG", 1, Part::open, 5}}));
  EXPECT_EQ(source->load(1), (std::vector<SourceMember>{{"", "dog b"}}));
  EXPECT_EQ(source->refused(),
            (std::vector<Refused>{{"cat/notes.txt", "no .jpg, .jpeg, .png, .webp, .tif or .tiff file"},
                                  {"stray.jpg", "lies in no class folder"}}));
}

TEST_F(ImageFolderTest, NamesAConverterForImagesOfOtherKinds) {
  put("cat/IMG_1.HEIC");
  put("dog/IMG_2.heic");
  try {
    open();
    FAIL() << "they cannot be read";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("but 2 images of other kinds, such as cat/IMG_1.HEIC"));
    EXPECT_EQ(error.fix(), "convert them: heif-convert IN OUT.jpg (Debian: libheif-examples)");
  }
  put("cat/a.jpg");
  const auto source = open();
  ASSERT_EQ(source->refused().size(), 3u);  // the class "dog" has none too
  EXPECT_THAT(source->refused()[1].reason, testing::HasSubstr("file; convert it: heif-convert IN OUT.jpg"));
}

TEST_F(ImageFolderTest, SaysThatAListBesideTheClassesIsNotUsed) {
  put("cat/a.jpg");
  put("dog/b.jpg");
  put("cat/notes.txt");
  put("labels.csv", "path,label\ncat/a.jpg,1\n");
  const auto source = open();
  ASSERT_EQ(source->refused().size(), 2u);
  EXPECT_EQ(source->refused()[0].name, "labels.csv");
  EXPECT_THAT(source->refused()[0].reason, testing::HasSubstr("a list that is not used"));
  EXPECT_THAT(source->refused()[0].reason, testing::HasSubstr("labels.csv --to DIR"));
}

TEST_F(ImageFolderTest, SaysThatClassFoldersAreLinks) {
  put("elsewhere/cat/a.jpg");
  base::make_folders(folder_.path() / "links");
  std::filesystem::create_directory_symlink(folder_.path() / "elsewhere/cat", folder_.path() / "links/cat");
  try {
    open_source({.path = folder_.path() / "links"});
    FAIL() << "entered";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("1 links were refused, the first is cat"));
    EXPECT_THAT(error.message(), testing::HasSubstr("cp -rL"));
  }
}

TEST_F(ImageFolderTest, NoticesClassesOneLevelDeeper) {
  put("my photos/cat/1.jpg");
  put("my photos/dog/2.jpg");
  const auto complaint = [&] {
    try {
      open();
    } catch (const base::Error& error) {
      return error.message();
    }
    return std::string("none");
  };
  EXPECT_THAT(complaint(),
              testing::HasSubstr("one class only; the class \"my photos\" is made of 2 folders (cat, dog)"));
  EXPECT_THAT(complaint(), testing::HasSubstr("if these are the classes: lockstep prep '"));
  EXPECT_THAT(complaint(), testing::HasSubstr("/my photos' --to DIR"));
  EXPECT_EQ(open_source({.path = folder_.path(), .format = "folder"}).source->classes().size(), 1u);
  put("cat/3.jpg");
  const auto source = open();
  ASSERT_EQ(source->notes().size(), 1u);
  EXPECT_THAT(source->notes()[0],
              testing::HasSubstr("\"my photos\" is made of 2 folders (cat, dog), whose images are merged"));
}

TEST_F(ImageFolderTest, PersonsWithinClassesAreNothingToTellOf) {
  for (const char* name : {"glad/ann/1.jpg", "glad/bob/2.jpg", "sad/eve/3.jpg", "sad/joe/4.jpg"}) put(name);
  EXPECT_EQ(open()->notes().size(), 0u);
  put("sad/ann/5.jpg");  // perhaps a person, perhaps a class
  EXPECT_EQ(open()->notes().size(), 2u);
}

TEST_F(ImageFolderTest, KeepsPartsOfItsOwn) {
  put("train/cat/1.jpg");
  put("val/dog/2.jpg");
  put("test/cat/3.jpg");
  const auto source = open();
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(source->samples().size(), 3u);
  EXPECT_EQ(source->samples()[0].part, Part::test);
  EXPECT_EQ(source->samples()[1].part, Part::train);
  EXPECT_EQ(source->samples()[2], (SourceSample{"val/dog/2.jpg", 1, Part::validate, 1}));
}

TEST_F(ImageFolderTest, TellsPartsFromClassesOfTheirNames) {
  put("train/1.jpg");
  put("bus/2.jpg");
  EXPECT_EQ(open()->classes(), (std::vector<std::string>{"bus", "train"}));  // the vehicle
  put("train/cat/3.jpg");
  try {
    open();
    FAIL() << "a part became a class";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("train is named as a part of a dataset, bus is not"));
  }
  std::filesystem::remove_all(folder_.path() / "bus");
  put("annotations/list.csv");  // without images: in nobody's way
  EXPECT_EQ(open()->classes(), (std::vector<std::string>{"cat"}));
}

TEST_F(ImageFolderTest, ListsByClassAndThenByName) {
  for (const char* name : {"cat-small/b.jpg", "cat/b.jpg", "cat/a/z.jpg", "cat/a-z.jpg"}) put(name);
  std::vector<std::string> names;
  const auto source = open();
  for (const auto& sample : source->samples()) names.push_back(sample.name);
  EXPECT_EQ(names, (std::vector<std::string>{"cat/a-z.jpg", "cat/a/z.jpg", "cat/b.jpg", "cat-small/b.jpg"}));
}

TEST_F(ImageFolderTest, RefusesAPartWithinAClass) {
  put("DATASET/train/1/a.jpg");
  put("DATASET/test/1/b.jpg");
  try {
    open();
    FAIL() << "the test part would be trained on";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("DATASET/test: it is named as a part of a dataset and lies within"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("prepare the folder that holds the parts"));
  }
  std::filesystem::remove_all(folder_.path() / "DATASET");
  put("ship/1.jpg");
  put("train/train_01/1.jpg");
  EXPECT_THROW(open(), base::Error);  // a part among classes
  std::filesystem::rename(folder_.path() / "train", folder_.path() / "steam train");
  EXPECT_EQ(open()->samples().size(), 2u);
}

TEST_F(ImageFolderTest, SaysWhenAllImagesAreLinksThatLeadOut) {
  const base::TemporaryFolder outside;
  base::write_file(outside.path() / "a.jpg", "x");
  base::make_folders(folder_.path() / "cat");
  std::filesystem::create_symlink(outside.path() / "a.jpg", folder_.path() / "cat/1.jpg");
  std::filesystem::create_symlink(outside.path() / "a.jpg", folder_.path() / "cat/2.jpg");
  try {
    open();
    FAIL() << "links that lead out were read";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("2 links were refused, the first is cat/1.jpg"));
    EXPECT_THAT(error.what(), testing::HasSubstr("leads out"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("cp -rL"));
  }
}

TEST_F(ImageFolderTest, NamesAClassWithoutImages) {
  put("cat/1.jpg");
  base::make_folders(folder_.path() / "dog");
  EXPECT_EQ(open()->refused(), (std::vector<Refused>{{"dog", "a class without images"}}));
  std::filesystem::remove_all(folder_.path() / "cat");
  std::filesystem::remove_all(folder_.path() / "dog");
  put("train/cat/1.jpg");
  put("val/cat/2.jpg");
  base::make_folders(folder_.path() / "val/dog");
  base::make_folders(folder_.path() / "notes");  // no part: in nobody's way
  EXPECT_EQ(open()->refused(), (std::vector<Refused>{{"val/dog", "a class without images"}}));
}

TEST_F(ImageFolderTest, RefusesOneClassWithAListBesideIt) {
  put("images/1.jpg");
  put("labels.csv", "1.jpg,cat\n");
  try {
    open();
    FAIL() << "the list was dropped";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("one class only, \"images\", and a list beside it: labels.csv"));
    EXPECT_THAT(error.fix(), testing::HasSubstr("labels.csv --to DIR; or --format folder"));
  }
  EXPECT_EQ(open_image_folder({.path = folder_.path(), .format = "folder"})->samples().size(), 1u);
  put("others/1.jpg");
  EXPECT_EQ(open()->classes().size(), 2u);
}

TEST_F(ImageFolderTest, SaysWhenThereIsNoClass) {
  put("a.jpg");
  EXPECT_THROW(open(), base::Error);
  EXPECT_FALSE(looks_like_image_folder({.path = folder_.path()}));
}

}  // namespace
}  // namespace lockstep::sources
