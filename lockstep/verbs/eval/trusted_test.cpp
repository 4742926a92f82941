// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/eval/trusted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/training/small_run.h"
#include "lockstep/verbs/eval/eval.h"

namespace lockstep::verbs::eval {
namespace {

using testing::HasSubstr;

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const base::Error& error) {
    return std::string(error.what()) + " / " + error.fix();
  }
  return "";
}

EvalResult evaluate(const training::Trained& trained, const TrustRequest& request) {
  EvalOptions options;
  options.trust = request;
  const auto alone = comm::single_group();
  return evaluate_trained(trained, options, *alone);
}

TEST(TrustedTest, CalibratesOnOneHalfAndReportsOnTheOther) {
  const training::SmallRun small(60);
  const training::Trained trained = training::load_trained({small.run()});
  const EvalResult result = evaluate(trained, {.calibrate = true, .features = true, .explain = true});
  ASSERT_TRUE(result.calibration && result.features);
  const int64_t reported = result.trust.at("rows").as_int();
  EXPECT_EQ(result.calibration->fitted_rows + result.calibration->threshold_rows() + reported, 120);
  EXPECT_EQ(result.calibration->known.size(), 3U);
  EXPECT_LE(result.trust.at("calibrated").at("nll").as_double(), result.trust.at("raw").at("nll").as_double() + 0.05);
  EXPECT_EQ(result.heat.size(), result.paths.size());
  save_trust(result, trained);
  save_evaluation(result, trained);
  EXPECT_TRUE(base::is_there(small.run() / "eval" / "heat-00.jpg"));

  // The rows that were calibrated with are reported on by nobody, later neither.
  const EvalResult later = evaluate(trained, {});
  EXPECT_EQ(later.trust.at("rows").as_int(), reported);
  EXPECT_EQ(later.trust.at("temperature").as_double(), result.calibration->temperature);
  EXPECT_FALSE(later.calibration);
  EXPECT_THAT(trust_words(later.trust), HasSubstr("these figures from the"));

  // With other weights it counts for nothing, and says so.
  model::save_weights(model::make_network(small.job().model, 16, 4), run::RunPaths{small.run()}.weights(),
                      {{"classes", base::Json::array_of(small.classes()).dump(-1)}});
  const EvalResult other = evaluate(training::load_trained({small.run()}), {});
  ASSERT_EQ(other.notes.size(), 1U);
  EXPECT_THAT(other.notes[0], HasSubstr("belongs to another network"));
  EXPECT_EQ(other.trust.at("rows").as_int(), 120);
}

TEST(TrustedTest, RanksFindTheFiguresOfOne) {
  const training::SmallRun small(60);
  const training::Trained trained = training::load_trained({small.run()});
  const EvalResult one = evaluate(trained, {.calibrate = true});
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    EvalOptions options;
    options.trust.calibrate = true;
    const EvalResult two = evaluate_trained(trained, options, group);
    EXPECT_EQ(two.trust, one.trust);
    EXPECT_EQ(two.calibration->to_json(), one.calibration->to_json());
  });
}

TEST(TrustedTest, FindsEvaluatedImagesAmongTheTrainingImages) {
  const training::SmallRun small(3);  // validates on what it trains on
  const training::Trained trained = training::load_trained({small.run()});
  const EvalResult result = evaluate(trained, {.leakage = true});
  EXPECT_EQ(result.trust.at("leakage").at("exact").as_int() + result.trust.at("leakage").at("near").as_int(), 6);
  EXPECT_GT(result.trust.at("leakage").at("exact").as_int(), 0);
  EXPECT_THAT(trust_words(result.trust), HasSubstr("6 of 6 images are among the training images"));
}

TEST(TrustedTest, GroupsByAColumnOfTheSamples) {
  const training::SmallRun small(4);
  for (const auto& name : small.classes()) {
    for (int i = 0; i < 4; ++i) {
      base::write_file(small.root() / "data" / name / (std::to_string(i) + ".json"),
                       i < 2 ? R"({"light": "day", "year": 7})" : R"({"light": "night", "year": 8})");
    }
  }
  const training::Trained trained = training::load_trained({small.run()});
  const EvalResult result = evaluate(trained, {.by = "light"});
  ASSERT_EQ(result.trust.at("groups").size(), 2U);
  EXPECT_EQ(result.trust.at("groups").items()[0].at("samples").as_int(), 4);
  EXPECT_EQ(evaluate(trained, {.by = "year"}).trust.at("groups").items()[0].at("value").as_string().size(), 1U);
  EXPECT_THAT(message_of([&] { evaluate(trained, {.by = "lihgt"}); }), HasSubstr("did you mean 'light'"));
}

TEST(TrustedTest, SaysWhatItCannotDo) {
  const training::SmallRun small(3);
  const training::Trained trained = training::load_trained({small.run()});
  EXPECT_THAT(message_of([&] { evaluate(trained, {.calibrate = true}); }), HasSubstr("6 rows are too few"));
  EXPECT_THAT(message_of([&] { evaluate(trained, {.features = true}); }), HasSubstr("add --calibrate"));
  EXPECT_THAT(message_of([&] { check_request({.calibrate = true}, trained, "train"); }), HasSubstr("trained on"));
  training::Trained other = training::load_trained({small.run()});
  other.job.task = spec::Task::regress;
  EXPECT_THAT(message_of([&] { check_request({.calibrate = true}, other, "validate"); }),
              HasSubstr("for task classify; this run's is regress"));
  other.job.task = spec::Task::classify;
  other.run.clear();
  EXPECT_THAT(message_of([&] { check_request({.calibrate = true}, other, "validate"); }), HasSubstr("run folder"));
}

}  // namespace
}  // namespace lockstep::verbs::eval
