// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/kitti_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using testing::Contains;
using testing::HasSubstr;

constexpr const char* kCar = "Car 0.10 1 -1.58 100 100 200 200 1.65 1.67 3.64 -0.65 1.71 46.70 -1.59";

template <class Work>
std::string complaint(const Work& work) {
  try {
    work();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(error.fix(), "") << error.what();
    return error.message();
  }
  return "no complaint";
}

class KittiResultsTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::write_file(folder_.path() / name, content);
  }
  KittiEvaluation score() const { return score_kitti(folder_.path() / "labels", folder_.path() / "results"); }

 private:
  base::TemporaryFolder folder_;
};

TEST_F(KittiResultsTest, ReadsLabelsAndResults) {
  const auto truths =
      parse_kitti_truths(std::string(kCar) + "\r\n\nDontCare -1 -1 -10 5 6 7 8 -1 -1 -1 -1000 -1000 -1000 -10", "x");
  ASSERT_EQ(truths.size(), 2U);
  EXPECT_EQ(truths[0].type, task::KittiType::car);
  EXPECT_THAT(truths[0].box, testing::ElementsAre(100, 100, 200, 200));
  EXPECT_EQ(truths[0].truncation, 0.1);
  EXPECT_EQ(truths[0].occlusion, 1);
  EXPECT_EQ(truths[1].type, task::KittiType::dont_care);
  const auto found = parse_kitti_results(std::string(kCar) + " 0.75\n", "x");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].score, 0.75);
  EXPECT_TRUE(parse_kitti_results("", "x").empty());
}

TEST_F(KittiResultsTest, NamesTheLineThatIsWrong) {
  const std::string car = kCar;
  const auto label = [](const std::string& text) { return complaint([&] { parse_kitti_truths(text, "7.txt"); }); };
  const auto result = [](const std::string& text) { return complaint([&] { parse_kitti_results(text, "7.txt"); }); };
  EXPECT_THAT(label(car + "\n" + car + " 0.5\n"), HasSubstr("7.txt:2: 16 columns, a label has 15"));
  EXPECT_THAT(result(car + "\n"), HasSubstr("7.txt:1: 15 columns, a result has 16\n  fix: the score is missing"));
  EXPECT_THAT(result("Car 1 2 3\n"), HasSubstr("7.txt:1: 4 columns, a result has 16"));
  EXPECT_THAT(result(car + " nan\n"), HasSubstr("7.txt:1: \"nan\" is no number"));
  EXPECT_THAT(result(car + " inf\n"), HasSubstr("\"inf\" is no number"));
  EXPECT_THAT(result("Car 0 0 0 200 100 100 200 1 1 1 1 1 1 0 0.5\n"), HasSubstr("the box ends before it begins"));
  EXPECT_EQ(label("Car 0 1e300 0 1 1 2 2 1 1 1 1 1 1 0"), "no complaint");
}

TEST_F(KittiResultsTest, ScoresFoldersAndSaysWhatIsMissing) {
  write("labels/000000.txt", std::string(kCar) + "\n");
  write("labels/000001.txt", "");
  write("labels/000002.txt", std::string(kCar) + "\n");
  write("results/000000.txt", std::string(kCar) + " 0.9\n");
  write("results/000001.txt", "Truck 0 0 0 1 1 2 2 1 1 1 1 1 1 0 0.5\n");
  write("results/000009.txt", "not read\n");
  write("results/readme.md", "not read\n");
  const KittiEvaluation all = score();
  EXPECT_EQ(all.images, 3);
  EXPECT_EQ(all.truths, 2);
  EXPECT_EQ(all.detections, 2);
  EXPECT_EQ(all.devkit[0].levels[0].truths, 0);  // occlusion 1 is not easy
  EXPECT_EQ(all.devkit[0].levels[1].truths, 2);
  EXPECT_DOUBLE_EQ(all.devkit[0].levels[1].mean41, 1.0 / 41);
  EXPECT_DOUBLE_EQ(all.kittibox[0].levels[1].mean41, 1.0 / 41);
  EXPECT_THAT(all.notes, Contains(HasSubstr("1 of 3 labels have no result file (\"000002.txt\")")));
  EXPECT_THAT(all.notes, Contains(HasSubstr("1 result files have no label (\"000009.txt\")")));
  EXPECT_THAT(all.notes, Contains(HasSubstr("1 detections are neither Car, Pedestrian nor Cyclist")));
  EXPECT_THAT(all.notes, Contains(HasSubstr("nobody detects a Cyclist")));
}

TEST_F(KittiResultsTest, FoldersWithoutFilesAreUserErrors) {
  EXPECT_THAT(complaint([&] { score(); }), HasSubstr("labels: there is no such folder of label files"));
  write("labels/readme.md", "");
  EXPECT_THAT(complaint([&] { score(); }), HasSubstr("labels: no label files (*.txt) are in it"));
  write("labels/000000.txt", "");
  EXPECT_THAT(complaint([&] { score(); }), HasSubstr("results: there is no such folder of result files"));
  write("results/data/000000.txt", "");
  EXPECT_THAT(complaint([&] { score(); }), HasSubstr("results: no result files (*.txt) are in it"));
  write("results/000000.txt", "");
  EXPECT_EQ(complaint([&] { score(); }), "no complaint");
}

}  // namespace
}  // namespace lockstep::sources
