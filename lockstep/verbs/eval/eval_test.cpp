// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/eval.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/run/folder.h"
#include "lockstep/task/classify.h"
#include "lockstep/training/small_run.h"

namespace lockstep::verbs::eval {
namespace {

using testing::HasSubstr;

EvalResult evaluate_small(const training::SmallRun& small, const std::string& data = "validate") {
  const training::Trained trained = training::load_trained({small.run()});
  const auto group = comm::join_group();
  EvalOptions options;
  options.data = data;
  return evaluate_trained(trained, options, *group);
}

const task::Metrics& metrics_of(const EvalResult& result) {
  return dynamic_cast<const task::ClassifyScore&>(*result.score).metrics();
}

TEST(EvalTest, EvaluatesEverySampleOnce) {
  const training::SmallRun small(21);  // two batches of 32, the last one smaller
  const EvalResult result = evaluate_small(small);
  EXPECT_EQ(result.score->samples(), 42);
  EXPECT_EQ(metrics_of(result).score(0).samples, 21);
  EXPECT_EQ(metrics_of(result).score(1).samples, 21);
  EXPECT_DOUBLE_EQ(metrics_of(result).top5(), 1);  // of two classes
}

TEST(EvalTest, RanksEvaluateEverySampleOnceAndAgreeWithOneRank) {
  const training::SmallRun small(21);
  const training::Trained trained =
      training::load_trained({small.run(), {}, {"evaluation.batch=8"}});  // six batches, the last one of 2
  const auto alone = comm::single_group();
  const auto one = evaluate_trained(trained, {}, *alone).score->pack();
  for (const int64_t ranks : {2, 3, 4}) {
    comm::run_thread_ranks(ranks, [&](comm::Group& group) {
      const EvalResult result = evaluate_trained(trained, {}, group);
      EXPECT_EQ(result.score->samples(), 42);
      EXPECT_EQ(result.score->pack(), one);
    });
  }
}

TEST(EvalTest, AFolderOfTheSameClassesCanBeGiven) {
  const training::SmallRun small;
  const auto other = small.root() / "other" / "red";
  base::make_folders(other);
  std::filesystem::copy(small.root() / "data" / "red" / "0.jpg", other / "0.jpg");
  const EvalResult result = evaluate_small(small, (small.root() / "other").string());
  EXPECT_EQ(result.score->samples(), 1);
  EXPECT_EQ(metrics_of(result).score(1).samples, 1);
  EXPECT_EQ(result.part, "");
  for (const auto& name : result.names) EXPECT_EQ(name, "red/0.jpg");
}

TEST(EvalTest, DataThatTheJobDoesNotHaveIsAUserError) {
  const training::SmallRun small;
  EXPECT_THROW(evaluate_small(small, "test"), base::Error);
}

TEST(EvalTest, AFolderOfThatNameServesWhereTheJobNamesNone) {
  const training::SmallRun small;
  const base::Path before = std::filesystem::current_path();
  base::make_folders(small.root() / "test" / "red");
  std::filesystem::copy(small.root() / "data" / "red" / "0.jpg", small.root() / "test" / "red" / "0.jpg");
  std::filesystem::current_path(small.root());
  const EvalResult result = evaluate_small(small, "test");
  std::filesystem::current_path(before);
  EXPECT_EQ(result.score->samples(), 1);
}

TEST(EvalTest, WritesTheWorstMistakesWithTheirPictures) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const run::RunPaths paths{small.run()};
  EvalResult result = evaluate_small(small);
  // Every sample of one class is taken for the other: a linear network that has learned nothing may do anything else.
  const auto wrong = std::make_shared<task::ClassifyScore>(small.classes(), 24);
  std::vector<task::FieldValues> red{{{.name = "label", .element = task::Element::int64}, std::vector<std::byte>(8)}};
  for (int64_t id = 0; id < 5; ++id) {
    const std::vector<float> logits{0, static_cast<float>(id + 1)};
    wrong->add({std::span(&id, 1), red, {{"logits", 2, logits}}});
  }
  result.score = wrong;
  result.paths.assign(5, (small.root() / "data" / "red" / "0.jpg").string());
  result.names.assign(5, "red/0.jpg");
  result.pictures.assign(5, base::read_file(result.paths[0]));
  base::make_folders(paths.pictures());
  base::write_file(paths.pictures() / "worst-77.jpg", "left over");
  save_evaluation(result, trained);
  const base::Json document = base::read_json(paths.evaluation());
  ASSERT_EQ(document.at("worst").size(), 5U);
  EXPECT_EQ(document.at("worst").items()[0].at("picture").as_string(), "eval/worst-00.jpg");
  EXPECT_EQ(document.at("worst").items()[0].at("sample").as_int(), 4);
  EXPECT_EQ(document.at("worst").items()[0].at("name").as_string(), "red/0.jpg");
  EXPECT_EQ(document.at("part").as_string(), "validate");
  EXPECT_THAT(base::read_file(paths.pictures() / "worst-04.jpg"), testing::StartsWith("\xff\xd8"));
  EXPECT_FALSE(std::filesystem::exists(paths.pictures() / "worst-77.jpg"));
}

TEST(EvalTest, TextNamesClassesAndFigures) {
  const training::SmallRun small;
  const std::string shown = eval_text(evaluate_small(small), training::load_trained({small.run()}));
  EXPECT_THAT(shown, HasSubstr("top-1 "));
  EXPECT_THAT(shown, HasSubstr("green thing       5"));
  EXPECT_THAT(shown, HasSubstr("linear with "));
}

TEST(EvalTest, DamagedImagesAreNamedAndCountedByPolicy) {
  const training::SmallRun small;
  base::write_file(small.root() / "data" / "red" / "2.jpg", "");
  EXPECT_THROW(evaluate_small(small), base::Error);
  const training::Trained trained = training::load_trained({small.run(), {}, {"data.on_bad_sample=skip"}});
  const auto group = comm::join_group();
  const EvalResult result = evaluate_trained(trained, {}, *group);
  EXPECT_EQ(result.score->samples(), 9);
  EXPECT_THAT(eval_text(result, trained), HasSubstr("red/2.jpg: "));
}

}  // namespace
}  // namespace lockstep::verbs::eval
