// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/coco_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

using task::CocoIou;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTruth = R"({"info": {"year": 2026},
"images": [{"id": 7, "width": 8, "height": 8}, {"id": 3, "width": 8, "height": 8}],
"categories": [{"id": 5, "name": "cup"}, {"id": 2, "name": "bowl"}],
"annotations": [
{"id": 1, "image_id": 7, "category_id": 5, "bbox": [0, 0, 4, 4], "area": 16, "iscrowd": 0, "segmentation": [[0, 0, 4, 0, 4, 4, 0, 4]]},
{"id": 2, "image_id": 3, "category_id": 2, "bbox": [4, 4, 4, 4], "area": 16, "iscrowd": false, "segmentation": {"size": [8, 8], "counts": [36, 4, 4, 4, 4, 4, 4, 4]}}
]})";

constexpr const char* kResults = R"([
{"image_id": 7, "category_id": 5, "bbox": [0, 0, 4, 4], "score": 0.9},
{"image_id": 3, "category_id": 2, "bbox": [4, 4, 4, 3], "score": 0.8}
])";

CocoEvaluation score(const std::string& truth, const std::string& results, CocoIou iou = CocoIou::bbox) {
  return score_coco({truth, "gt.json"}, {results, "dt.json"}, iou);
}

std::string complaint(const std::string& truth, const std::string& results, CocoIou iou = CocoIou::bbox) {
  try {
    score(truth, results, iou);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_THAT(error.fix(), testing::Not(IsEmpty())) << error.what();
    return error.message();
  }
  return "no complaint";
}

std::string replaced(std::string words, const std::string& from, const std::string& to) {
  const size_t at = words.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return words.replace(at, from.size(), to);
}

TEST(CocoResultsTest, ScoresBoxes) {
  const CocoEvaluation all = score(kTruth, kResults);
  EXPECT_EQ(all.images, 2);
  EXPECT_EQ(all.truths, 2);
  EXPECT_EQ(all.detections, 2);
  EXPECT_THAT(all.classes, testing::ElementsAre("bowl", "cup"));  // by number
  EXPECT_NEAR(all.figures.classes[0].ap, 0.6, 1e-12);             // overlap .75: .50 to .75 of ten
  EXPECT_NEAR(all.figures.classes[1].ap, 1, 1e-12);
  EXPECT_THAT(all.notes, IsEmpty());
}

TEST(CocoResultsTest, ScoresMasksOfEverySpelling) {
  const std::string results = R"([
    {"image_id": 7, "category_id": 5, "segmentation": [[0, 0, 4, 0, 4, 4, 0, 4]], "score": 0.9},
    {"image_id": 3, "category_id": 2, "segmentation": {"size": [8, 8], "counts": "T14400000"}, "score": 0.8}])";
  const CocoEvaluation all = score(kTruth, results, CocoIou::segm);
  EXPECT_NEAR(all.figures.ap, 1, 1e-12);
  EXPECT_NEAR(score(kTruth, results, CocoIou::bbox).figures.ap, 1, 1e-12);  // the boxes around the masks
  const CocoEvaluation with_boxes = score(
      kTruth,
      R"([{"image_id": 7, "category_id": 5, "bbox": [0, 0, 90, 90], "segmentation": [[0, 0, 4, 0, 4, 4, 0, 4]], "score": 1}])",
      CocoIou::segm);
  EXPECT_NEAR(with_boxes.figures.classes[1].ap, 1, 1e-12);
  ASSERT_EQ(with_boxes.notes.size(), 1U);
  EXPECT_THAT(with_boxes.notes[0], HasSubstr("by the area of the box, as in pycocotools"));
}

TEST(CocoResultsTest, NumbersOfImagesMayBeWrittenAsFractions) {
  EXPECT_EQ(score(kTruth, replaced(kResults, R"("image_id": 3)", R"("image_id": 3.0)")).figures,
            score(kTruth, kResults).figures);
  EXPECT_THAT(complaint(kTruth, replaced(kResults, R"("image_id": 3)", R"("image_id": 3.5)")),
              HasSubstr("dt.json:3:14: an integer is expected"));
}

TEST(CocoResultsTest, NoDetectionIsLegal) {
  const CocoEvaluation all = score(kTruth, " [ ] \n");
  EXPECT_DOUBLE_EQ(all.figures.ap, 0);
  EXPECT_THAT(all.notes, testing::ElementsAre("dt.json: no detections"));
}

TEST(CocoResultsTest, SaysWhatOthersWouldPassOverInSilence) {
  EXPECT_THAT(complaint(replaced(kTruth, R"("id": 2, "image_id": 3)", R"("id": 1, "image_id": 3)"), kResults),
              HasSubstr("gt.json:6:8: a second annotation has the id 1"));
  const auto notes =
      score(replaced(kTruth, R"({"id": 1, "image_id": 7)", R"({"id": 0, "image_id": 7)"), kResults).notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0],
              HasSubstr("an annotation has the id 0: pycocotools takes every detection of it for a false one"));
  const auto other = score(replaced(kTruth, R"("image_id": 3)", R"("image_id": 4)"), kResults);
  EXPECT_EQ(other.truths, 1);
  EXPECT_THAT(other.notes[0], HasSubstr("1 annotations belong to images that are not listed (the first to 4)"));
  const auto no_area = score(replaced(kTruth, R"("area": 16, )", ""), kResults);
  EXPECT_THAT(no_area.notes[0], HasSubstr("1 annotations have no area: that of their box is taken"));
  const auto twice = score(replaced(kTruth, R"({"id": 3, "width": 8, "height": 8})",
                                    R"({"id": 3, "width": 8, "height": 8}, {"id": 3, "width": 8, "height": 8})"),
                           kResults);
  EXPECT_THAT(twice.notes[0], HasSubstr("1 images are listed twice"));
  EXPECT_EQ(twice.images, 2);
}

TEST(CocoResultsTest, NamesTheResultThatIsWrong) {
  const auto wrong = [](const std::string& from, const std::string& to) {
    return complaint(kTruth, replaced(kResults, from, to));
  };
  EXPECT_THAT(wrong(R"("image_id": 3)", R"("image_id": 4)"), HasSubstr("dt.json:3:14: there is no image 4 in gt.json"));
  EXPECT_THAT(wrong(R"("category_id": 2)", R"("category_id": 0)"),
              HasSubstr("dt.json:3:32: there is no category 0 in gt.json"));
  EXPECT_THAT(wrong(R"("category_id": 2)", R"("category_id": 0)"), HasSubstr("2 (bowl), 5 (cup)"));
  EXPECT_THAT(wrong("0.8", "NaN"), HasSubstr("dt.json:3: NaN is no number of a box or a score"));
  EXPECT_THAT(wrong("[4, 4, 4, 3]", "[4, -Infinity, 4, 3]"), HasSubstr("dt.json:3: Infinity is no number"));
  EXPECT_THAT(wrong("0.8", "1e999"), HasSubstr("dt.json:3:66: '1e999' is not a number\n  fix: a result is {"));
  EXPECT_THAT(wrong("0.8", "\"high\""), HasSubstr("the score is \"high\", no finite number"));
  EXPECT_THAT(wrong("[4, 4, 4, 3]", "[4, 4, -4, 3]"),
              HasSubstr("dt.json:3:43: the box [4,4,-4,3] has a negative size"));
  EXPECT_THAT(wrong("[4, 4, 4, 3]", "[4, 4, 4]"), HasSubstr("is not x, y, width, height"));
  EXPECT_THAT(wrong(R"(, "score": 0.8)", ""), HasSubstr("score"));
  EXPECT_THAT(wrong(R"("image_id": 3)", R"("image_id": "3")"), HasSubstr("dt.json:3:14"));
  EXPECT_THAT(wrong("[\n", "{\"results\": [\n"), HasSubstr("dt.json:1: this is no array of results"));
  EXPECT_THAT(wrong("0.8}\n]", "0.8}\n"), HasSubstr("dt.json:4: "));
  EXPECT_THAT(wrong("0.8}\n]", "0."), HasSubstr("dt.json:3"));
  EXPECT_THAT(complaint(kTruth, ""), HasSubstr("dt.json:1: this is no array of results"));
  EXPECT_THAT(complaint(kTruth, "[3]"), HasSubstr("dt.json:1"));
  EXPECT_THAT(complaint(kTruth, kResults, CocoIou::segm), HasSubstr("a result without a segmentation"));
  EXPECT_THAT(complaint(kTruth, R"([{"image_id": 7, "category_id": 5, "score": 1}])"),
              HasSubstr("a result without bbox and segmentation"));
}

TEST(CocoResultsTest, NamesTheMaskThatIsWrong) {
  const auto wrong = [](const std::string& segmentation) {
    return complaint(kTruth, R"([{"image_id": 7, "category_id": 5, "score": 1, "segmentation": )" + segmentation + "}]",
                     CocoIou::segm);
  };
  EXPECT_THAT(
      wrong(R"({"size": [8, 9], "counts": "8"})"),
      HasSubstr("dt.json:1:64: segmentation: its size [8,9] is not that of the image (image 7, 8 high, 8 wide)"));
  EXPECT_THAT(wrong(R"({"size": [8, 8], "counts": "8"})"), HasSubstr("the runs are shorter than the image"));
  EXPECT_THAT(wrong(R"({"size": [8, 8], "counts": [80]})"), HasSubstr("the runs are longer than the image"));
  EXPECT_THAT(wrong(R"({"size": [8, 8], "counts": "~~"})"), HasSubstr("damaged counts"));
  EXPECT_THAT(wrong("[[1, 1, 2, 2]]"), HasSubstr("a polygon has three corners or more"));
  EXPECT_THAT(wrong("[[1, 1, 2, 2, 9e9, 1]]"), HasSubstr("lies far outside"));
  EXPECT_THAT(wrong("7"), HasSubstr("unknown form"));
}

TEST(CocoResultsTest, NamesTheTruthThatIsWrong) {
  const auto wrong = [](const std::string& from, const std::string& to, CocoIou iou = CocoIou::bbox) {
    return complaint(replaced(kTruth, from, to), kResults, iou);
  };
  EXPECT_THAT(wrong(R"("category_id": 2)", R"("category_id": 9)"), HasSubstr("gt.json:6:41: there is no category 9"));
  EXPECT_THAT(wrong("[4, 4, 4, 4]", "[4, NaN, 4, 4]"), HasSubstr("gt.json:6: NaN is no number"));
  EXPECT_THAT(wrong("[[0, 0, 4, 0, 4, 4, 0, 4]]", "[[0, 0, 4, 0]]", CocoIou::segm),
              HasSubstr("gt.json:5:108: segmentation: a polygon has three corners or more"));
  EXPECT_THAT(wrong(R"("images": [{"id": 7, "width": 8, "height": 8}, )", R"("images": [{"id": 7}, )", CocoIou::segm),
              HasSubstr("image 7 has no width and height"));
  EXPECT_THAT(wrong(R"({"id": 3, "width": 8)", R"({"id": 7, "width": 9)"),
              HasSubstr("image 7 is listed twice, with another size"));
  EXPECT_THAT(wrong(R"({"id": 2, "name": "bowl"})", R"({"id": 5, "name": "bowl"})"),
              HasSubstr("category 5 is listed twice"));
  EXPECT_THAT(complaint("[]", kResults), HasSubstr("gt.json: it lists no images"));
  EXPECT_THAT(complaint(R"({"images": [{"id": 1}]})", kResults), HasSubstr("it lists no categories"));
  EXPECT_THAT(complaint("", kResults), HasSubstr("gt.json:1"));
}

}  // namespace
}  // namespace lockstep::sources
