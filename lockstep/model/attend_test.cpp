// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/network.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::model {
namespace {

spec::Job captioner(int64_t classes, int64_t width) {
  spec::Job job;
  job.task = spec::Task::caption;
  job.model.name = "attend_resnet18";
  job.model.classes = classes;
  job.model.width = width;
  job.data.image_size = {32, 48};
  job.caption.length = 5;
  job.caption.embedding = 6;
  job.caption.hidden = 7;
  job.caption.attention = 8;
  return job;
}

// Xu et al. with 512 channels, 512 numbers a word, an LSTM of 1800 and 10,000 words.
TEST(AttendTest, TheDecoderHasAsManyParametersAsThePapers) {
  spec::Job job = captioner(10000, 128);  // 4 x 128 channels at stride 16
  job.caption.embedding = 512;
  job.caption.hidden = 1800;
  job.caption.attention = 512;
  const Network network = make_network(job, at::kMeta);
  int64_t count = 0;
  for (const Named& parameter : network.blocks().back()->parameters) count += parameter.tensor.numel();
  EXPECT_EQ(count, 35333450);
}

TEST(AttendTest, TrainingGivesLogitsOfEveryWordAndEveryParameterLearns) {
  const Network network = make_network(captioner(11, 4));
  const at::Tensor words = at::randint(0, 11, {2, 5}, at::kLong);
  const NamedTensors output = network.forward({{"image", at::rand({2, 3, 32, 48})}, {"tokens", words}}, Mode::train);
  EXPECT_EQ(output.at("word_logits").sizes().vec(), (std::vector<int64_t>{2, 5, 11}));
  EXPECT_EQ(output.at("attention").sizes().vec(), (std::vector<int64_t>{2, 5, 6}));
  EXPECT_NEAR(output.at("attention").sum().item<double>(), 10, 1e-4);
  (output.at("word_logits").square().mean() + output.at("attention").square().mean()).backward();
  for (const Named& parameter : network.parameters()) EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
}

// Given back as the true words, a caption that was found has the probabilities that the search told.
TEST(AttendTest, ABeamTellsTheProbabilityOfEachWordThatItFinds) {
  spec::Job job = captioner(9, 4);
  const at::Tensor images = at::rand({3, 3, 32, 48});
  for (const int64_t beam : {1, 4}) {
    job.caption.beam = beam;
    const Network network = make_network(job);
    const at::Tensor none = at::randint(0, 9, {3, 5}, at::kLong);
    const NamedTensors found = network.forward({{"image", images}, {"tokens", none}}, Mode::evaluate);
    const at::Tensor words = found.at("words").to(at::kLong), logs = found.at("log_probabilities");
    const NamedTensors again = network.forward({{"image", images}, {"tokens", words}}, Mode::evaluate);
    for (int64_t row = 0; row < 3; ++row) {
      bool ended = false;
      for (int64_t count = 0; count < 5 && !ended; ++count) {
        EXPECT_NEAR(logs[row][count].item<double>(), again.at("given")[row][count].item<double>(), 1e-4);
        ended = words[row][count].item<int64_t>() == task::kEndWord;
      }
    }
  }
}

TEST(AttendTest, AnImageWithoutAPlaceIsRefused) {
  spec::Job job = captioner(9, 4);
  job.data.image_size = 8;
  EXPECT_THROW(make_network(job, at::kMeta), base::Error);
}

}  // namespace
}  // namespace lockstep::model
