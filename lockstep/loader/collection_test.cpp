// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/collection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/source_folder.h"

namespace lockstep::loader {
namespace {

using testing::HasSubstr;

class CollectionTest : public testing::Test {
 protected:
  void put(const std::string& name) {
    const base::Path path = folder_.path() / name;
    base::make_folders(path.parent_path());
    base::FileWriter(path, base::FileWriter::Mode::truncate).write("x");
  }
  std::string root() const { return folder_.path().string(); }
  std::string complaint() const {
    try {
      scan_folder(root());
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.message();
    }
    return "no complaint";
  }

  base::TemporaryFolder folder_;
};

TEST_F(CollectionTest, TakesSubFoldersAsSortedClasses) {
  for (const char* name : {"dog/b.JPG", "dog/a.jpeg", "cat/z.png", "dog/.hidden.jpg", "dog/notes.txt", "cat/B.PNG"}) {
    put(name);
  }
  put("readme.txt");
  const Collection all = scan_folder(root() + "/");
  EXPECT_EQ(all.classes, (std::vector<std::string>{"cat", "dog"}));
  const std::vector<Sample> expected{
      {root() + "/cat/B.PNG", 0}, {root() + "/cat/z.png", 0}, {root() + "/dog/a.jpeg", 1}, {root() + "/dog/b.JPG", 1}};
  EXPECT_EQ(all.samples, expected);
  EXPECT_EQ(all.num_ignored, 2);  // readme.txt beside the classes as well
  EXPECT_THAT(all.first_ignored, HasSubstr("/readme.txt"));
}

TEST_F(CollectionTest, FollowsLinksToFilesAndFolders) {
  put("elsewhere/image.jpg");
  base::make_folders(folder_.path() / "data" / "cat");
  std::filesystem::create_symlink(folder_.path() / "elsewhere/image.jpg", folder_.path() / "data/cat/link.jpg");
  std::filesystem::create_directory_symlink(folder_.path() / "elsewhere", folder_.path() / "data/dog");
  const Collection all = scan_folder((folder_.path() / "data").string());
  EXPECT_EQ(all.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(all.samples.size(), 2u);
}

TEST_F(CollectionTest, APipeOrASocketIsNoSampleWhateverItsName) {
  put("cat/a.jpg");
  ASSERT_EQ(::mkfifo((folder_.path() / "cat/pipe.jpg").c_str(), 0600), 0);
  ASSERT_EQ(::mknod((folder_.path() / "cat/socket.png").c_str(), S_IFSOCK | 0600, 0), 0);
  const Collection all = scan_folder(root());
  EXPECT_EQ(all.samples, (std::vector<Sample>{{root() + "/cat/a.jpg", 0}}));
  EXPECT_EQ(all.num_ignored, 2);
  EXPECT_THAT(all.first_ignored, HasSubstr("cat/pipe.jpg"));
  const auto source = sources::open_image_folder({.path = folder_.path()});
  EXPECT_EQ(source->samples().size(), 1U);
  EXPECT_EQ(source->refused(),
            (std::vector<sources::Refused>{{"cat/pipe.jpg", "this is a pipe, a socket or a device"},
                                           {"cat/socket.png", "this is a pipe, a socket or a device"}}));
}

TEST_F(CollectionTest, TakesImagesInFoldersOfAClassInTheOrderOfPrep) {
  for (const char* name : {"cat-small/b.jpg", "cat/b.jpg", "cat/a/z.jpg", "cat/a/deep/y.png", "cat/a-z.jpg",
                           "cat/.hidden/x.jpg", "cat/a/notes.txt"}) {
    put(name);
  }
  const Collection all = scan_folder(root());
  std::vector<std::string> names, listed;
  for (const auto& sample : all.samples) names.push_back(sample.path.substr(root().size() + 1));
  EXPECT_EQ(names, (std::vector<std::string>{"cat/a-z.jpg", "cat/a/deep/y.png", "cat/a/z.jpg", "cat/b.jpg",
                                             "cat-small/b.jpg"}));
  EXPECT_EQ(all.num_ignored, 1);
  const auto source = sources::open_image_folder({.path = folder_.path()});
  for (const auto& sample : source->samples()) listed.push_back(sample.name);
  EXPECT_EQ(listed, names);
}

TEST_F(CollectionTest, FollowsLinksToFoldersOfAClassButNotInACircle) {
  put("data/cat/a.jpg");
  put("elsewhere/b.jpg");
  std::filesystem::create_directory_symlink(folder_.path() / "elsewhere", folder_.path() / "data/cat/more");
  std::filesystem::create_symlink(folder_.path() / "absent", folder_.path() / "data/cat/broken");
  const std::string data = root() + "/data";
  const Collection all = scan_folder(data);
  EXPECT_EQ(all.samples, (std::vector<Sample>{{data + "/cat/a.jpg", 0}, {data + "/cat/more/b.jpg", 0}}));
  EXPECT_EQ(all.num_ignored, 1);
  std::filesystem::create_directory_symlink(folder_.path() / "data/cat", folder_.path() / "elsewhere/again");
  try {
    scan_folder(data);
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cat/more/again/: its links lead in a circle"));
  }
}

TEST_F(CollectionTest, RefusesADatasetWithItsPartsInThePlaceOfClasses) {
  put("train/cat/a.jpg");
  put("val/cat/b.jpg");
  EXPECT_THAT(complaint(), HasSubstr("train: it is named as a part of a dataset and lies in the place of a class"));
  EXPECT_THAT(complaint(), HasSubstr("train on the part"));
}

TEST_F(CollectionTest, NamesAMissingFolder) {
  EXPECT_THROW(scan_folder(root() + "/absent"), base::Error);
  put("file");
  try {
    scan_folder(root() + "/file");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("a folder of images is expected"));
  }
}

TEST_F(CollectionTest, SaysWhenThereIsNoClassFolder) {
  EXPECT_THAT(complaint(), HasSubstr("holds no class folder"));
  put("a.jpg");
  EXPECT_THAT(complaint(), HasSubstr("holds 1 images but no class folder"));
}

TEST_F(CollectionTest, NamesAnEmptyClassFolder) {
  put("cat/a.jpg");
  base::make_folders(folder_.path() / "dog");
  EXPECT_THAT(complaint(), HasSubstr("dog: this class has no image"));
  put("dog/a.heic");
  EXPECT_THAT(complaint(), HasSubstr("1 other files, such as"));
  EXPECT_THAT(complaint(), HasSubstr("convert them: heif-convert IN OUT.jpg"));
}

TEST_F(CollectionTest, LabelsByTheTrainingClasses) {
  put("dog/a.jpg");
  const Collection part = scan_folder(root(), {"cat", "dog"});
  EXPECT_EQ(part.samples.front().label, 1);
  EXPECT_EQ(part.classes.size(), 2u);
  try {
    scan_folder(root(), {"cat", "dogs"});
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("did you mean 'dogs'?"));
  }
}

TEST_F(CollectionTest, FingerprintKnowsNamesAndLabelsButNotTheRoot) {
  Collection all{.root = "/a", .classes = {"x", "y"}, .samples = {{"/a/x/1.jpg", 0}, {"/a/y/2.jpg", 1}}};
  Collection moved{.root = "/b/c", .classes = {"x", "y"}, .samples = {{"/b/c/x/1.jpg", 0}, {"/b/c/y/2.jpg", 1}}};
  EXPECT_EQ(all.fingerprint(), moved.fingerprint());
  moved.samples[0].label = 1;
  EXPECT_NE(all.fingerprint(), moved.fingerprint());
  moved = all;
  moved.classes[1] = "z";
  EXPECT_NE(all.fingerprint(), moved.fingerprint());
}

TEST_F(CollectionTest, FingerprintKnowsAnotherSetUnderTheSameNames) {
  for (int i = 0; i < 200; ++i) put(base::text("cat/", 1000 + i, ".jpg"));
  const std::string before = scan_folder(root()).fingerprint();
  EXPECT_EQ(scan_folder(root()).fingerprint(), before);
  for (int i = 0; i < 200; ++i) {
    base::write_file(base::Path(root()) / base::text("cat/", 1000 + i, ".jpg"), std::string(5000, 'x'));
  }
  EXPECT_NE(scan_folder(root()).fingerprint(), before);
}

TEST_F(CollectionTest, FingerprintKnowsAnImageExchangedForAnotherOfItsSize) {
  for (int i = 0; i < 20; ++i) put(base::text("cat/", 1000 + i, ".jpg"));
  const base::Path exchanged = base::Path(root()) / "cat/1007.jpg";
  base::write_file(exchanged, "one");
  const std::string before = scan_folder(root()).fingerprint();
  base::write_file(exchanged, "two");
  const std::string after = scan_folder(root()).fingerprint();
  EXPECT_NE(after, before);
  EXPECT_EQ(after.substr(0, after.find('/')), before.substr(0, before.find('/')));  // names and sizes are the same
}

TEST_F(CollectionTest, TellsWhichFilesAreNewer) {
  for (const char* name : {"cat/a.jpg", "cat/b.jpg", "dog/c.jpg"}) put(name);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* name : {"cat/a.jpg", "dog/c.jpg"}) {
    std::filesystem::last_write_time(base::Path(root()) / name, long_ago);
  }
  const auto newer = files_newer_than(scan_folder(root()), long_ago + std::chrono::hours(1));
  ASSERT_EQ(newer.size(), 1U);
  EXPECT_EQ(newer[0], root() + "/cat/b.jpg");
}

TEST_F(CollectionTest, AFolderNamedSyntheticIsAFolder) {
  Collection folder{.root = "synthetic"};
  EXPECT_FALSE(folder.is_synthetic());
  EXPECT_TRUE(synthetic_collection(4, 2).is_synthetic());
}

TEST_F(CollectionTest, SyntheticClassesAreBalancedAndSorted) {
  const Collection all = synthetic_collection(100, 11);
  EXPECT_EQ(all.classes.front(), "class00");
  EXPECT_EQ(all.classes.back(), "class10");
  EXPECT_TRUE(std::is_sorted(all.samples.begin(), all.samples.end(),
                             [](const Sample& a, const Sample& b) { return a.label < b.label; }));
  EXPECT_EQ(all.samples.back().label, 10);
  EXPECT_THROW(synthetic_collection(0, 2), base::Error);
}

}  // namespace
}  // namespace lockstep::loader
