// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/model/network.h"

namespace lockstep::model {
namespace {

spec::Job forecaster(const std::string& name, int64_t side) {
  spec::Job job;
  job.task = spec::Task::nowcast;
  job.model.name = name;
  job.model.classes = 1;
  job.data.image_size = side;
  return job;
}

// The five networks of Shi et al. 2015, table 1: 64 x 64 frames in patches of 4 x 4.
TEST(ConvLstmTest, HasThePublishedParameters) {
  struct Published {
    std::vector<double> widths;
    int64_t input_kernel, state_kernel, parameters;
  };
  for (const Published& row : {Published{{256}, 5, 5, 13524496},
                               {{128, 128}, 5, 5, 10042896},
                               {{128, 64, 64}, 5, 5, 7585296},
                               {{128, 128}, 9, 1, 11550224},
                               {{128, 64, 64}, 9, 1, 8830480}}) {
    spec::Job job = forecaster("convlstm", 64);
    job.model.patch = 4;
    job.nowcast.widths = row.widths;
    job.nowcast.input_kernel = row.input_kernel;
    job.nowcast.state_kernel = row.state_kernel;
    EXPECT_EQ(make_network(job, at::kMeta).parameter_count(), row.parameters);
  }
}

// Ayzel et al. 2020.
TEST(RainNetTest, HasThePublishedParameters) {
  spec::Job job = forecaster("rainnet", 928);
  job.nowcast.inputs = 4;
  job.nowcast.outputs = 1;
  EXPECT_EQ(make_network(job, at::kMeta).parameter_count(), 31380613);
}

TEST(ConvLstmTest, GivesFramesAndAGradientForEveryTensor) {
  for (const char* name : {"convlstm", "rainnet"}) {
    spec::Job job = forecaster(name, 32);
    job.nowcast.inputs = 3;
    job.nowcast.outputs = 4;
    job.nowcast.widths = {6, 4};
    if (job.model.name == "convlstm") job.model.patch = 2;
    if (job.model.name == "rainnet") job.model.width = 4;
    const Network network = make_network(job);
    for (const Named& parameter : network.parameters()) parameter.tensor.set_requires_grad(true);
    const auto outputs = network.forward({{"frames", at::rand({2, 3, 1, 32, 32})}}, Mode::train);
    ASSERT_EQ(outputs.at("forecast").sizes(), (std::vector<int64_t>{2, 4, 1, 32, 32}));
    outputs.at("forecast").sum().backward();
    for (const Named& parameter : network.parameters())
      EXPECT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
  }
}

TEST(ConvLstmTest, TheGridMustBeAMultipleOfThePatch) {
  spec::Job job = forecaster("convlstm", 30);
  job.model.patch = 4;
  EXPECT_THROW(make_network(job), base::Error);
  EXPECT_THROW(make_network(forecaster("rainnet", 40)), base::Error);
}

}  // namespace
}  // namespace lockstep::model
