// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/small_run.h"
#include "lockstep/run/folder.h"

namespace lockstep::verbs::eval {
namespace {

using testing::HasSubstr;

EvalResult evaluate_small(const model::SmallRun& small, const std::string& data = "validate") {
  const model::Trained trained = model::load_trained({small.run()});
  const auto group = comm::join_group();
  EvalOptions options;
  options.data = data;
  return evaluate_trained(trained, options, *group);
}

TEST(EvalTest, JudgesEverySampleOnce) {
  const model::SmallRun small(21);  // two batches of 32, the last one smaller
  const EvalResult result = evaluate_small(small);
  EXPECT_EQ(result.metrics.samples(), 42);
  EXPECT_EQ(result.metrics.score(0).samples, 21);
  EXPECT_EQ(result.metrics.score(1).samples, 21);
  EXPECT_DOUBLE_EQ(result.metrics.top5(), 1);  // of two classes
}

TEST(EvalTest, RanksJudgeEverySampleOnceAndAgreeWithOneRank) {
  const model::SmallRun small(21);
  const model::Trained trained =
      model::load_trained({small.run(), {}, {"evaluation.batch=8"}});  // six batches, the last one of 2
  const auto alone = comm::single_group();
  const auto one = evaluate_trained(trained, {}, *alone).metrics.pack();
  for (const int64_t ranks : {2, 3, 4}) {
    comm::run_thread_ranks(ranks, [&](comm::Group& group) {
      const EvalResult result = evaluate_trained(trained, {}, group);
      EXPECT_EQ(result.metrics.samples(), 42);
      EXPECT_EQ(result.metrics.pack(), one);
    });
  }
}

TEST(EvalTest, AFolderOfTheSameClassesCanBeGiven) {
  const model::SmallRun small;
  const auto other = small.root() / "other" / "red";
  base::make_folders(other);
  std::filesystem::copy(small.root() / "data" / "red" / "0.jpg", other / "0.jpg");
  const EvalResult result = evaluate_small(small, (small.root() / "other").string());
  EXPECT_EQ(result.metrics.samples(), 1);
  EXPECT_EQ(result.metrics.score(1).samples, 1);
}

TEST(EvalTest, DataThatTheJobDoesNotHaveIsAUserError) {
  const model::SmallRun small;
  EXPECT_THROW(evaluate_small(small, "test"), base::Error);
}

TEST(EvalTest, WritesTheWorstMistakesWithTheirPictures) {
  const model::SmallRun small;
  const model::Trained trained = model::load_trained({small.run()});
  const run::RunPaths paths{small.run()};
  EvalResult result = evaluate_small(small);
  // Every sample of one class is taken for the other: a linear network that has learned nothing may do anything else.
  task::Metrics wrong(2);
  for (int64_t id = 0; id < 5; ++id) {
    wrong.add(std::vector<float>{0, static_cast<float>(id + 1)}, std::vector<int64_t>{0}, std::vector<int64_t>{id});
  }
  result.metrics = wrong;
  result.paths.assign(5, (small.root() / "data" / "red" / "0.jpg").string());
  result.pictures.assign(5, base::read_file(result.paths[0]));
  base::make_folders(paths.pictures());
  base::write_file(paths.pictures() / "worst-77.jpg", "left over");
  save_evaluation(result, trained);
  const base::Json document = base::read_json(paths.evaluation());
  ASSERT_EQ(document.at("worst").size(), 5U);
  EXPECT_EQ(document.at("worst").items()[0].at("picture").as_string(), "eval/worst-00.jpg");
  EXPECT_EQ(document.at("worst").items()[0].at("sample").as_int(), 4);
  EXPECT_THAT(base::read_file(paths.pictures() / "worst-04.jpg"), testing::StartsWith("\xff\xd8"));
  EXPECT_FALSE(std::filesystem::exists(paths.pictures() / "worst-77.jpg"));
}

TEST(EvalTest, TextNamesClassesAndFigures) {
  const model::SmallRun small;
  const std::string shown = eval_text(evaluate_small(small), model::load_trained({small.run()}));
  EXPECT_THAT(shown, HasSubstr("top-1 "));
  EXPECT_THAT(shown, HasSubstr("green thing       5"));
  EXPECT_THAT(shown, HasSubstr("linear with "));
}

TEST(EvalTest, DamagedImagesAreNamedAndCountedByPolicy) {
  const model::SmallRun small;
  base::write_file(small.root() / "data" / "red" / "2.jpg", "");
  EXPECT_THROW(evaluate_small(small), base::Error);
  const model::Trained trained = model::load_trained({small.run(), {}, {"data.on_bad_sample=skip"}});
  const auto group = comm::join_group();
  const EvalResult result = evaluate_trained(trained, {}, *group);
  EXPECT_EQ(result.metrics.samples(), 9);
  EXPECT_THAT(eval_text(result, trained), HasSubstr("red/2.jpg: "));
}

}  // namespace
}  // namespace lockstep::verbs::eval
