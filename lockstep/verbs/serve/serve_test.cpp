// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/serve/serve.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "lockstep/image/decode.h"
#include "lockstep/results/terms.h"
#include "lockstep/store/run_version.h"
#include "lockstep/store/store.h"
#include "lockstep/training/small_run.h"
#include "lockstep/trust/calibration.h"

namespace lockstep::verbs::serve {
namespace {

std::string grey_png() {
  image::Image image(20, 30);
  for (auto& value : image.pixels) value = 90;
  return image::encode_png(image);
}

TEST(ServeTest, ARunBecomesAModel) {
  const training::SmallRun small;
  const auto model = serve_trained({small.run()}, "");
  EXPECT_EQ(model->name(), small.job().name);
  EXPECT_EQ(model->version().size(), 12U);
  EXPECT_EQ(model->classes(), small.classes());
  EXPECT_EQ(serve_trained({small.run()}, "other")->name(), "other");
  const serving::EncodedRow row = model->encode_image(grey_png());
  const auto answers = model->run({{&row, 2}}, false);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].record.at("classes").size(), 2U);
}

TEST(ServeTest, ConfidencesAreCalibratedWhereTheRunIs) {
  const training::SmallRun small;
  const auto shares = [](const base::Path& source) {
    const auto model = serve_trained({source}, "");
    const serving::EncodedRow row = model->encode_image(grey_png());
    return model->run({{&row, 2}}, false).at(0).outputs.at(0);
  };
  const auto plain = shares(small.run());
  const training::Trained trained = training::load_trained({small.run()});
  trust::Calibration calibration;
  calibration.terms = results::terms_of(trained.job, trained.weights, trained.classes, 0);
  calibration.temperature = 2;
  trust::write_calibration(small.run(), calibration);
  const auto calibrated = shares(small.run());
  const double first = std::sqrt(static_cast<double>(plain[0]));
  const double second = std::sqrt(static_cast<double>(plain[1]));
  EXPECT_NEAR(calibrated[0], first / (first + second), 1e-6);
  EXPECT_NE(plain, calibrated);
  store::add(small.root() / "store", "small", store::RunVersion(small.run(), "", "").parts());
  EXPECT_EQ(shares(small.root() / "store/small:1"), calibrated);
  calibration.terms.weights_sha256 = "of others";
  trust::write_calibration(small.run(), calibration);
  EXPECT_EQ(shares(small.run()), plain);
}

TEST(ServeTest, OtherWeightsAreAnotherIdentity) {
  const training::SmallRun small;
  const serving::ModelSource source = model_source({small.run()}, "");
  const std::string before = source.identity();
  EXPECT_EQ(source.identity(), before);
  const base::Path weights = small.run() / "weights.safetensors";
  base::write_file(weights, base::read_file(weights));
  EXPECT_NE(source.identity(), before);
  const serving::ModelSource file = model_source({weights}, "");
  const std::string of_file = file.identity();
  base::write_file(weights, base::read_file(weights));
  EXPECT_NE(file.identity(), of_file);
}

TEST(ServeTest, ServesUntilItIsStopped) {
  const training::SmallRun small;
  ServeOptions options;
  options.source = model_source({small.run()}, "");
  std::atomic<bool> was_started = false;
  options.started = [&](const web::Server& server, const serving::ServedModel& model) {
    EXPECT_GT(server.port(), 0);
    EXPECT_EQ(model.name(), small.job().name);
    was_started = true;
  };
  options.stop = [&] { return was_started.load(); };
  serve(options);
  EXPECT_TRUE(was_started);
}

}  // namespace
}  // namespace lockstep::verbs::serve
