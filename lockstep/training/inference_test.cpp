// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/inference.h"

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>

#include "lockstep/step/evaluate.h"
#include "lockstep/step/samples.h"
#include "lockstep/training/small_run.h"

namespace lockstep::training {
namespace {

objective::HostRows reference(const Trained& trained, const loader::Batch& batch) {
  const c10::AutoGradMode no_gradients(false);
  const step::PassPrecision scope(trained.network, trained.job.training.precision, at::kCPU);
  const auto samples = step::to_samples(batch, at::kCPU);
  return trained.objective->predicted(
      step::evaluate_pass(trained.network, samples.fields, *trained.objective, {trained.job.training.precision}));
}

TEST(InferenceTest, GivesWhatEvaluationGivesInEveryPrecisionAndThread) {
  const SmallRun small;
  const std::map<std::string, double> bound{{"fp32", 1e-6}, {"bf16", 2e-2}, {"amp", 0}};  // two are frozen
  for (const char* precision : {"fp32", "bf16", "amp"}) {
    const Trained trained = load_trained({small.run(), {}, {std::string("training.precision=\"") + precision + "\""}});
    const loader::Batch batch = loader::draw_batch(trained.job, 0, 3);
    const auto expected = reference(trained, batch);
    const at::Tensor before = trained.network.parameters().front().tensor;
    {
      const Inference inference(trained, at::kCPU);
      const bool gradients = c10::GradMode::is_enabled();
      for (int i = 0; i < 2; ++i) {
        objective::HostRows got;
        std::thread([&] { got = inference.outputs(batch); }).join();
        ASSERT_EQ(got.size(), expected.size());
        for (size_t k = 0; k < got.size(); ++k) {
          EXPECT_EQ(got[k].name, expected[k].name);
          const double off = (got[k].tensor - expected[k].tensor).abs().max().item<double>();
          EXPECT_LE(off, bound.at(precision)) << precision;
        }
      }
      EXPECT_EQ(c10::GradMode::is_enabled(), gradients);
    }
    EXPECT_TRUE(trained.network.parameters().front().tensor.is_same(before)) << "the weights themselves are back";
  }
}

}  // namespace
}  // namespace lockstep::training
