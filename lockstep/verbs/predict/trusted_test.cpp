// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/trusted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/run/checkpoint.h"
#include "lockstep/run/saved_tensors.h"
#include "lockstep/store/run_version.h"
#include "lockstep/store/store.h"
#include "lockstep/training/small_run.h"
#include "lockstep/trust/drawn_rows.h"
#include "lockstep/verbs/predict/predict.h"

namespace lockstep::verbs::predict {
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

// A run with a calibration of drawn rows, whose network is said to be too sure.
void calibrate_run(const training::Trained& trained) {
  trust::Calibration calibration = trust::calibrate(trust::drawn_rows(400, 2, 3, 5));
  calibration.terms = results::terms_of(trained.job, trained.weights, trained.classes, 0);
  trust::write_calibration(trained.run, calibration);
}

void keep_features(const training::Trained& trained) {
  trust::ClassRows rows;
  std::vector<std::string> names;
  for (int64_t i = 0; i < 6; ++i) {
    std::vector<float> feature(3 * 16 * 16, static_cast<float>(i % 2));
    feature[static_cast<size_t>(i)] = 5;
    rows.add(std::vector<float>{0, 0}, i % 2, i, feature);
    names.push_back("image " + std::to_string(i));
  }
  trust::write_features(trained.run, trust::make_training_features(rows, names, base::sha256_of_file(trained.weights)));
}

std::vector<Prediction> predict(const training::Trained& trained, const TrustedAnswers& trusted,
                                const std::vector<std::string>& images) {
  PredictOptions options;
  options.trusted = &trusted;
  return predict_images(trained, images, options);
}

double confidence(const Prediction& prediction) {
  return prediction.record.at("classes").items()[0].at("probability").as_double();
}

TEST(TrustedTest, ACalibratedRunIsLessSureAndGivesSets) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const auto images = images_of({(small.root() / "data").string()});
  const TrustedAnswers none(trained, {});
  EXPECT_FALSE(none.is_active());
  const auto raw = predict(trained, none, images);
  calibrate_run(trained);
  const TrustedAnswers trusted(trained, {.coverage = 0.9, .abstain = 0.2, .unusual = 0.1});
  EXPECT_NEAR(trusted.temperature(), 3, 1);
  const auto found = predict(trained, trusted, images);
  for (size_t i = 0; i < images.size(); ++i) {
    EXPECT_LT(confidence(found[i]), confidence(raw[i]));
    EXPECT_EQ(found[i].record.at("classes").items()[0].at("name"), raw[i].record.at("classes").items()[0].at("name"));
    EXPECT_EQ(found[i].record.at("set").items()[0], found[i].record.at("classes").items()[0].at("name"));
    EXPECT_TRUE(found[i].record.contains("abstained") && found[i].record.contains("unusual"));
    EXPECT_THAT(predict_line(found[i], trained), HasSubstr("} at 90.0 %"));
  }
  EXPECT_EQ(trusted.columns(), (std::vector<std::string>{"set", "abstained", "unusual"}));
  EXPECT_THAT(predict_csv(found, *trained.task, 2, trusted.columns()),
              HasSubstr("file,label,confidence,label_2,confidence_2,set,abstained,unusual,error\r\n"));
}

TEST(TrustedTest, AVersionOfAStoreAnswersAsItsRun) {
  const training::SmallRun small;
  const training::Trained run = training::load_trained({small.run()});
  const auto images = images_of({(small.root() / "data").string()});
  const base::Path store = small.root() / "store";
  store::add(store, "plain", store::RunVersion(small.run(), "", "").parts());
  calibrate_run(run);
  keep_features(run);
  store::add(store, "small", store::RunVersion(small.run(), "", "").parts());
  const training::Trained version = training::load_trained({store / "small:latest"});
  const TrustOptions asked{.coverage = 0.9, .abstain = 0.2, .unusual = 0.1};
  const auto of_run = predict(run, TrustedAnswers(run, asked), images);
  const auto of_version = predict(version, TrustedAnswers(version, asked), images);
  ASSERT_EQ(of_run.size(), of_version.size());
  for (size_t i = 0; i < of_run.size(); ++i) EXPECT_EQ(of_run[i].record, of_version[i].record);
  EXPECT_THAT(message_of([&] { TrustedAnswers(training::load_trained({store / "plain:1"}), asked); }),
              HasSubstr("these weights are not calibrated"));
  EXPECT_THAT(message_of([&] { TrustedAnswers(version, {.nearest = 2}); }), HasSubstr("in a run folder alone"));
}

TEST(TrustedTest, ShowsTheNearestTrainingImages) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  keep_features(trained);
  const TrustedAnswers trusted(trained, {.nearest = 2});
  const auto found = predict(trained, trusted, images_of({(small.root() / "data").string()}));
  ASSERT_EQ(found[0].record.at("nearest").size(), 2U);
  EXPECT_THAT(found[0].record.at("nearest").items()[0].at("name").as_string(), HasSubstr("image "));
  EXPECT_THAT(predict_line(found[0], trained), HasSubstr("  like image "));
}

TEST(TrustedTest, AnEnsembleIsTheMeanAndSaysWhereItDisagrees) {
  const training::SmallRun small, second;
  const training::Trained trained = training::load_trained({small.run()});
  model::save_weights(model::make_network(second.job().model, 16, 9), run::RunPaths{second.run()}.weights(),
                      {{"classes", base::Json::array_of(second.classes()).dump(-1)}});
  const auto images = images_of({(small.root() / "data").string()});
  const TrustedAnswers trusted(trained, {.ensemble = {second.run().string()}});
  const auto members = load_ensemble(trusted.options().ensemble, trained, at::kCPU);
  PredictOptions options;
  options.trusted = &trusted;
  options.ensemble = &members;
  const auto both = predict_images(trained, images, options);
  const auto share_of = [](const Prediction& prediction, const std::string& name) {
    for (const auto& entry : prediction.record.at("classes").items()) {
      if (entry.at("name").as_string() == name) return entry.at("probability").as_double();
    }
    return -1.0;
  };
  const auto one = predict_images(trained, images, {}), other = predict_images(members[0], images, {});
  for (size_t i = 0; i < images.size(); ++i) {
    EXPECT_NEAR(share_of(both[i], "red"), (share_of(one[i], "red") + share_of(other[i], "red")) / 2, 1e-6);
    EXPECT_GE(both[i].record.at("disagreement").as_double(), 0);
  }
  EXPECT_THAT(message_of([&] { TrustedAnswers(trained, {.coverage = 0.9, .ensemble = {"x"}}); }),
              HasSubstr("of one network"));
}

// Other weights than those that the run ended with, as its checkpoint of that step.
void keep_checkpoint(const training::SmallRun& run, int64_t step) {
  const base::Path drawn = run.root() / "drawn.safetensors";
  model::save_weights(model::make_network(run.job().model, 16, static_cast<uint64_t>(step)), drawn);
  const weights::SafetensorsFile file(drawn);
  run::Save save;
  save.step = step;
  save.state["classes"] = base::Json::array_of(run.classes());
  save.parts.push_back(run::safetensors_part("weights.safetensors", file.tensors()));
  run::CheckpointStore(run::RunPaths{run.run()}.checkpoints()).save(save);
}

TEST(TrustedTest, AMemberOfAnEnsembleMayBeACheckpoint) {
  const training::SmallRun small;
  keep_checkpoint(small, 7);
  keep_checkpoint(small, 8);
  const training::Trained trained = training::load_trained({small.run()});
  const std::string run = small.run().string();
  const auto members = load_ensemble({run + "@7", run + "@8", run + "@last"}, trained, at::kCPU);
  const auto images = images_of({(small.root() / "data").string()});
  const auto alone = [&](const char* which) {
    return predict_images(training::load_trained({small.run(), "", {}, at::kCPU, which}), images, {});
  };
  EXPECT_NE(alone("7")[0].record, alone("8")[0].record);
  EXPECT_EQ(predict_images(members[0], images, {})[0].record, alone("7")[0].record);
  EXPECT_EQ(predict_images(members[1], images, {})[0].record, alone("8")[0].record);
  EXPECT_EQ(predict_images(members[2], images, {})[0].record, alone("last")[0].record);
  EXPECT_THAT(message_of([&] { load_ensemble({run + "@9"}, trained, at::kCPU); }),
              HasSubstr("has no good checkpoint of step 9"));
  EXPECT_THAT(message_of([&] { load_ensemble({run + "@newest"}, trained, at::kCPU); }), HasSubstr("newest"));
  EXPECT_THAT(message_of([&] { load_ensemble({run + "2@7"}, trained, at::kCPU); }),
              HasSubstr("run2 is not a run folder"));
}

TEST(TrustedTest, WritesHeatMapsOverTheImages) {
  const training::SmallRun small(1);
  const training::Trained trained = training::load_trained({small.run()});
  const TrustedAnswers trusted(trained, {.explain = small.root() / "heat"});
  const std::string image = (small.root() / "data" / "red" / "0.jpg").string();
  const auto found = predict(trained, trusted, {image});
  EXPECT_EQ(found[0].record, predict_images(trained, {image}, {})[0].record);
  EXPECT_TRUE(base::is_there(small.root() / "heat" / (image.substr(1) + ".jpg")));
}

TEST(TrustedTest, SaysWhatTheRunCannotPromise) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const auto refusal = [&](const TrustOptions& options) {
    return message_of([&] { TrustedAnswers(trained, options); });
  };
  EXPECT_THAT(refusal({.coverage = 0.9}), HasSubstr("not calibrated"));
  EXPECT_THAT(refusal({.nearest = 1}), HasSubstr("--calibrate --features"));
  calibrate_run(trained);
  EXPECT_THAT(refusal({.coverage = 0.9999}), HasSubstr("needs 9999 rows"));
  EXPECT_THAT(refusal({.unusual = 0.1, .score = "mahalanobis"}), HasSubstr("no features"));
  model::save_weights(model::make_network(small.job().model, 16, 4), run::RunPaths{small.run()}.weights(),
                      {{"classes", base::Json::array_of(small.classes()).dump(-1)}});
  const training::Trained other = training::load_trained({small.run()});
  EXPECT_THAT(message_of([&] { TrustedAnswers(other, {.coverage = 0.9}); }), HasSubstr("belongs to another network"));
  const TrustedAnswers plain(other, {});
  EXPECT_THAT(plain.note(), HasSubstr("confidences are not calibrated"));
  EXPECT_FALSE(plain.is_active());
}

}  // namespace
}  // namespace lockstep::verbs::predict
