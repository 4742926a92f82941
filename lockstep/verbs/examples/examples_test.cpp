// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/examples/examples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/error.h"

namespace lockstep::verbs::examples {
namespace {

using base::Path;

const std::vector<base::Embedded> kFiles = {{"catalogue/gpus.json", "{}"},
                                            {"examples/documents/a/job.json", "{ }"},
                                            {"examples/documents/a/run.sh", "#!/bin/sh\n"},
                                            {"notebooks/a.ipynb", "{}"}};

TEST(ExamplesTest, CopiesJobsScriptsAndNotebooksAndNothingElse) {
  const base::TemporaryFolder temporary;
  const Path folder = temporary.path() / "new" / "folder";
  const Copied copied = copy_examples(kFiles, folder);
  EXPECT_THAT(copied.written, testing::ElementsAre(folder / "documents/a/job.json", folder / "documents/a/run.sh",
                                                   folder / "notebooks/a.ipynb"));
  EXPECT_EQ(base::read_file(folder / "documents/a/job.json"), "{ }");
  const auto mode = [](const Path& path) { return std::filesystem::status(path).permissions(); };
  EXPECT_NE(mode(folder / "documents/a/run.sh") & std::filesystem::perms::owner_exec, std::filesystem::perms::none);
  EXPECT_EQ(mode(folder / "documents/a/job.json") & std::filesystem::perms::owner_exec, std::filesystem::perms::none);
}

TEST(ExamplesTest, LeavesWhatIsTheSameAndRefusesWhatSomebodyChanged) {
  const base::TemporaryFolder temporary;
  copy_examples(kFiles, temporary.path());
  EXPECT_EQ(copy_examples(kFiles, temporary.path()).unchanged.size(), 3U);
  base::write_file(temporary.path() / "notebooks/a.ipynb", "mine");
  std::filesystem::remove(temporary.path() / "documents/a/job.json");
  EXPECT_THROW(copy_examples(kFiles, temporary.path()), base::Error);
  EXPECT_FALSE(base::is_there(temporary.path() / "documents/a/job.json"));
  EXPECT_EQ(base::read_file(temporary.path() / "notebooks/a.ipynb"), "mine");
}

TEST(ExamplesTest, TheProgramBringsTheFiveUsersJobs) {
  const base::TemporaryFolder temporary;
  copy_examples(base::embedded_files(), temporary.path());
  for (const char* user : {"applicant", "minotauro", "kitti", "newcomer", "deepsim"}) {
    EXPECT_TRUE(base::is_there(temporary.path() / "documents" / user / "run.sh")) << user;
  }
  EXPECT_TRUE(base::is_there(temporary.path() / "kitti/job.json"));  // the table of documents/kitti names it
}

}  // namespace
}  // namespace lockstep::verbs::examples
