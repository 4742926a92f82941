// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/score_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::verbs::eval {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

TEST(ScoreFilesTest, CocoFiguresHaveTheirNames) {
  sources::CocoEvaluation evaluation;
  for (size_t i = 0; i < task::kCocoFigures.size(); ++i)
    evaluation.figures.*task::kCocoFigures[i].value = static_cast<double>(i) / 16;
  evaluation.figures.ap_large = -1;
  evaluation.figures.classes = {{3, 0.25, 0.5, 0.125}, {}};
  evaluation.classes = {"cup", "bowl"};
  evaluation.notes = {"something"};
  const base::Json all = coco_json(evaluation, task::CocoIou::segm);
  EXPECT_EQ(all.at("iou").as_string(), "segm");
  EXPECT_EQ(all.at("ap50").as_double(), 1.0 / 16);
  EXPECT_EQ(all.at("ap_large").as_double(), -1);
  EXPECT_EQ(all.at("ar_large").as_double(), 11.0 / 16);
  EXPECT_EQ(all.at("classes").items()[0].at("ap50").as_double(), 0.5);
  const std::string shown = coco_text(evaluation, task::CocoIou::segm);
  EXPECT_THAT(shown, ContainsRegex("AP +\\.75 +all +100 +0\\.1250"));
  EXPECT_THAT(shown, ContainsRegex("AP +\\.50:\\.95 +large +100 +-"));
  EXPECT_THAT(shown, ContainsRegex("AR +\\.50:\\.95 +all +1 +0\\.3750"));
  EXPECT_THAT(shown, ContainsRegex("cup +3 +0\\.2500 +0\\.5000 +0\\.1250"));
  EXPECT_THAT(shown, ContainsRegex("bowl +0 +- +- +-"));
  EXPECT_THAT(shown, HasSubstr("\nnote: something\n"));
}

TEST(ScoreFilesTest, KittiFiguresHaveTheirNames) {
  sources::KittiEvaluation evaluation;
  for (auto* rule : {&evaluation.devkit, &evaluation.kittibox})
    for (size_t c = 0; c < 3; ++c) (*rule)[c].name = std::array{"Car", "Pedestrian", "Cyclist"}[c];
  evaluation.devkit[0].is_detected = true;
  evaluation.devkit[0].levels[1] = {7, 0.125, 0.25, 0.375};
  evaluation.kittibox[0].levels[1].mean41 = 0.5;
  const base::Json all = kitti_json(evaluation);
  EXPECT_EQ(all.at("car_moderate_ap11").as_double(), 0.125);
  EXPECT_EQ(all.at("car_moderate_ap40").as_double(), 0.25);
  EXPECT_EQ(all.at("car_moderate_mean41").as_double(), 0.375);
  EXPECT_EQ(all.at("car_moderate_kittibox").as_double(), 0.5);
  EXPECT_TRUE(all.at("cyclist_hard_ap40").is_null());
  const std::string shown = kitti_text(evaluation);
  EXPECT_THAT(shown, ContainsRegex("Car +moderate +7 +0\\.1250 +0\\.2500 +0\\.3750 +0\\.5000"));
  EXPECT_THAT(shown, ContainsRegex("Cyclist +hard +0 +- +- +- +-"));
}

}  // namespace
}  // namespace lockstep::verbs::eval
