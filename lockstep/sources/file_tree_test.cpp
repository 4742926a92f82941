// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/file_tree.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

class FileTreeTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content = "x") {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  base::TemporaryFolder folder_;
};

TEST_F(FileTreeTest, APlainFileIsReadAPipeIsNotWaitedFor) {
  put("a.jpg", "content");
  std::filesystem::create_symlink("a.jpg", folder_.path() / "link.jpg");
  EXPECT_EQ(read_plain_file(folder_.path() / "link.jpg"), "content");
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe.jpg").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe.jpg", folder_.path() / "to_pipe.jpg");
  ASSERT_EQ(::mknod((folder_.path() / "socket.jpg").c_str(), S_IFSOCK | 0600, 0), 0);
  const auto complaint = [&](const char* name, uint64_t max_bytes) -> std::string {
    try {
      return read_plain_file(folder_.path() / name, max_bytes);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.what();
    }
  };
  for (const char* name : {"pipe.jpg", "to_pipe.jpg", "socket.jpg"}) {
    EXPECT_THAT(complaint(name, 9), testing::HasSubstr("this is a pipe, a socket or a device")) << name;
  }
  EXPECT_THAT(complaint("", 9), testing::HasSubstr("this is a folder"));
  EXPECT_THAT(complaint("absent.jpg", 9), testing::HasSubstr("there is no such file"));
  EXPECT_THAT(complaint("a.jpg", 6), testing::HasSubstr("more than 6 bytes"));
}

TEST_F(FileTreeTest, ListsVisibleFilesSortedWithTheirSizes) {
  put("tree/b/2.jpg", "four");
  put("tree/b/deep/er/1.jpg");
  put("tree/a.txt", "");
  put("tree/.hidden/x.jpg");
  const FileTree tree(folder_.path() / "tree");
  EXPECT_EQ(tree.list().files, (std::vector<TreeFile>{{"a.txt", 0}, {"b/2.jpg", 4}, {"b/deep/er/1.jpg", 1}}));
  EXPECT_EQ(tree.list("b/deep").files, (std::vector<TreeFile>{{"b/deep/er/1.jpg", 1}}));
  EXPECT_EQ(tree.folders(), (std::vector<std::string>{"b"}));
  EXPECT_EQ(tree.read("b/2.jpg"), "four");
  EXPECT_TRUE(tree.has_file("a.txt"));
  EXPECT_FALSE(tree.has_file("b"));
  EXPECT_TRUE(tree.has_folder("b/deep"));
}

TEST_F(FileTreeTest, ReadsNothingOutsideOfItself) {
  put("secret.txt", "secret");
  put("tree/in.jpg");
  std::filesystem::create_symlink(folder_.path() / "secret.txt", folder_.path() / "tree/absolute.jpg");
  std::filesystem::create_symlink("../secret.txt", folder_.path() / "tree/relative.jpg");
  std::filesystem::create_symlink("in.jpg", folder_.path() / "tree/good.jpg");
  std::filesystem::create_symlink(folder_.path() / "tree/in.jpg", folder_.path() / "tree/back.jpg");
  std::filesystem::create_symlink("nowhere.jpg", folder_.path() / "tree/nowhere.jpg");
  const FileTree tree(folder_.path() / "tree");
  for (const char* name : {"../secret.txt", "absolute.jpg", "relative.jpg"}) {
    EXPECT_THROW(tree.read(name), base::Error) << name;
    EXPECT_THROW(tree.size_of(name), base::Error) << name;
    EXPECT_FALSE(tree.has_file(name)) << name;
  }
  EXPECT_THROW(tree.read((folder_.path() / "secret.txt").string()), base::Error);
  const FileTree::Listing all = tree.list();
  EXPECT_EQ(all.files, (std::vector<TreeFile>{{"back.jpg", 1}, {"good.jpg", 1}, {"in.jpg", 1}}));
  ASSERT_EQ(all.refused.size(), 3u);
  EXPECT_EQ(all.refused[0], (Refused{"absolute.jpg", "a link: it leads out of the folder"}));
  EXPECT_EQ(all.refused[2].name, "relative.jpg");
}

TEST_F(FileTreeTest, AFailingFileSystemIsNotTheEndOfAFolder) {
  put("tree/a.jpg");
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir((folder_.path() / "tree").c_str()), ::closedir);
  ASSERT_TRUE(entries);
  const int file = ::open((folder_.path() / "tree/a.jpg").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(::dup2(file, ::dirfd(entries.get())), 0);  // from now on reading the folder fails
  ::close(file);
  try {
    next_entry(entries.get(), "tree");
    FAIL() << "a failure was taken for the end";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::machine);
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot read the folder tree"));
  }
}

TEST_F(FileTreeTest, AFailingFileSystemIsNoFaultOfAFile) {
  put("tree/a.jpg");
  put("tree/b/c.jpg");
  std::filesystem::create_symlink("a.jpg", folder_.path() / "tree/link.jpg");
  const FileTree tree(folder_.path() / "tree");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::open("/dev/null", O_RDONLY);  // the next number that is free
  ::close(next);
  const rlimit tight{static_cast<rlim_t>(next), before.rlim_max};  // EMFILE at every open from now on
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<std::string> blames;
  const auto blame = [&](const auto& call) {
    try {
      call();
      blames.emplace_back("none");
    } catch (const base::Error& error) {
      blames.emplace_back(error.blame() == base::Blame::machine ? "machine" : "user");
    }
  };
  blame([&] { tree.read("a.jpg"); });
  blame([&] { tree.size_of("a.jpg"); });
  blame([&] { tree.has_file("a.jpg"); });
  blame([&] { tree.has_folder("b"); });
  blame([&] { tree.list(); });
  blame([&] { tree.folders(); });
  blame([&] { FileTree(folder_.path() / "tree"); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(blames, std::vector<std::string>(7, "machine"));
  EXPECT_EQ(tree.list().files.size(), 3u);
}

TEST_F(FileTreeTest, RefusesNamesThatAreNoUtf8) {
  put("tree/\xFF.jpg");
  put("tree/\xC3\xA4.jpg");
  const FileTree::Listing all = FileTree(folder_.path() / "tree").list();
  EXPECT_EQ(all.files.size(), 1u);
  EXPECT_EQ(all.refused, (std::vector<Refused>{{"\xFF.jpg", "its name is no UTF-8"}}));
}

TEST_F(FileTreeTest, RefusesLargeFilesAndMissingFolders) {
  put("tree/a", "12345");
  EXPECT_THROW(FileTree(folder_.path() / "tree").read("a", 4), base::Error);
  EXPECT_THROW(FileTree(folder_.path() / "absent"), base::Error);
  EXPECT_THROW(FileTree(folder_.path() / "tree/a"), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
