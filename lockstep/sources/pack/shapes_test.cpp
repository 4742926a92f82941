// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {
namespace {

using testing::HasSubstr;

class ShapesTest : public testing::Test {
 protected:
  ShapesTest() {
    request_.folder = folder_.path() / "shapes";
    request_.count = 60;
    request_.classes = 4;
    request_.image_size = 32;
    request_.threads = 2;
  }
  std::string complaint() const {
    try {
      prepare_shapes(request_, {});
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      EXPECT_NE(error.fix(), "");
      return error.what();
    }
    return "no complaint";
  }

  base::TemporaryFolder folder_;
  ShapesRequest request_;
};

TEST_F(ShapesTest, SplitsEveryClassFourToOne) {
  const Dataset dataset = prepare_shapes(request_, {});
  EXPECT_EQ(dataset.num_train, 48);
  EXPECT_EQ(dataset.num_validate, 12);
  const auto train = open_source({.path = request_.folder / "train", .format = "folder"}).source;
  const auto validate = open_source({.path = request_.folder / "validate", .format = "folder"}).source;
  EXPECT_EQ(train->classes(), (std::vector<std::string>{"disk", "square", "star", "triangle"}));
  EXPECT_EQ(validate->classes(), train->classes());
  EXPECT_EQ(train->samples().size(), 48u);
  EXPECT_EQ(validate->samples().size(), 12u);
  for (int32_t label = 0; label < 4; ++label) {
    EXPECT_EQ(std::count_if(train->samples().begin(), train->samples().end(),
                            [&](const SourceSample& sample) { return sample.label == label; }),
              12);
  }
  EXPECT_TRUE(std::filesystem::exists(request_.folder / "contact.jpg"));
  EXPECT_FALSE(std::filesystem::exists(request_.folder / "dataset.begun.json"));
  EXPECT_TRUE(train->refused().empty());
  EXPECT_TRUE(validate->refused().empty());
}

TEST_F(ShapesTest, TheBytesDoNotDependOnThreads) {
  const Dataset two = prepare_shapes(request_, {});
  request_.folder = folder_.path() / "again";
  request_.threads = 5;
  EXPECT_EQ(prepare_shapes(request_, {}).fingerprint, two.fingerprint);
  request_.folder = folder_.path() / "other";
  request_.seed = 2;
  EXPECT_NE(prepare_shapes(request_, {}).fingerprint, two.fingerprint);
}

TEST_F(ShapesTest, LeavesACompleteSetAlone) {
  const Dataset first = prepare_shapes(request_, {});
  int64_t calls = 0;
  const Dataset second = prepare_shapes(request_, [&](int64_t, int64_t) { ++calls; });
  EXPECT_TRUE(second.was_complete);
  EXPECT_EQ(second.fingerprint, first.fingerprint);
  EXPECT_EQ(second.num_train, 48);
  EXPECT_EQ(calls, 0);
}

TEST_F(ShapesTest, CompletesAnInterruptedSet) {
  const auto stop_midway = [](int64_t done, int64_t) {
    if (done == 20) throw std::runtime_error("power cut");
  };
  EXPECT_THROW(prepare_shapes(request_, stop_midway), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(request_.folder / "dataset.json"));
  const auto train = open_source({.path = request_.folder / "train", .format = "folder"}).source;
  const base::Path first = request_.folder / "train" / train->samples().front().name;
  base::FileWriter(first, base::FileWriter::Mode::truncate).write("damaged meanwhile");
  const Dataset completed = prepare_shapes(request_, {});
  EXPECT_FALSE(completed.was_complete);
  EXPECT_GT(std::filesystem::file_size(first), 200u);
  request_.folder = folder_.path() / "whole";
  EXPECT_EQ(prepare_shapes(request_, {}).fingerprint, completed.fingerprint);
}

TEST_F(ShapesTest, RefusesAFolderThatHoldsSomethingElse) {
  base::make_folders(request_.folder);
  base::write_file(request_.folder / "thesis.txt", "precious");
  EXPECT_THAT(complaint(), HasSubstr("is not empty and holds no dataset of ours"));
  EXPECT_EQ(base::read_file(request_.folder / "thesis.txt"), "precious");
  request_.folder = request_.folder / "thesis.txt";
  EXPECT_THAT(complaint(), HasSubstr("this is a file"));
}

TEST_F(ShapesTest, RefusesADatasetOfOtherNumbers) {
  prepare_shapes(request_, {});
  request_.seed = 3;
  EXPECT_THAT(complaint(), HasSubstr("holds another dataset"));
}

TEST_F(ShapesTest, RefusesImpossibleNumbers) {
  request_.classes = 11;
  EXPECT_THAT(complaint(), HasSubstr("--classes 11 is out of range"));
  request_.classes = 4;
  request_.count = 19;
  EXPECT_THAT(complaint(), HasSubstr("--count 19"));
  request_.count = 60;
  request_.image_size = 4;
  EXPECT_THAT(complaint(), HasSubstr("--image-size 4"));
  EXPECT_FALSE(std::filesystem::exists(request_.folder));
}

}  // namespace
}  // namespace lockstep::sources
