// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/ddp.h"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep::measure {
namespace {

spec::Job small_job() {
  base::Json document = base::Json::object();
  document["name"] = "ddp";
  document["data"]["train"] = "synthetic";
  document["data"]["samples"] = 8;
  document["data"]["image_size"] = 32;
  document["model"]["name"] = "resnet18";
  document["model"]["classes"] = 10;
  document["training"]["global_batch"] = 4;
  document["training"]["steps"] = 1;
  document["training"]["threads"] = 1;
  return spec::parse_job(document, {});
}

TEST(DdpTest, RanksObeyTheLinesThatTheFirstOneReads) {
  std::ostringstream answers;
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    std::istringstream lines(group.rank() == 0 ? "go 2\nalone 2\n" : "");
    std::ostringstream nowhere;
    serve_steps(small_job(), group, lines, group.rank() == 0 ? answers : nowhere);
    EXPECT_EQ(nowhere.str(), "");
  });
  std::istringstream read(answers.str());
  std::string ready;
  int64_t ranks = 0;
  double seconds = 0, exposed = 0, alone = 0;
  read >> ready >> ranks >> seconds >> exposed >> alone;
  EXPECT_EQ(ready, "ready");
  EXPECT_EQ(ranks, 2);
  EXPECT_GT(seconds, exposed);
  EXPECT_GT(alone, 0);
}

TEST(DdpTest, WhatIsHiddenIsAShareOfTheAllReduceAlone) {
  DdpTimes times{.ours = {1, 1}, .peer = {1.5, 1.5}, .exposed = {.01, .01}, .alone = .04, .peer_greeting = ""};
  EXPECT_DOUBLE_EQ(times.hidden_share(), .75);
  EXPECT_DOUBLE_EQ(times.ratio(), 1.5);
  times.exposed = {.5, .5};  // waiting for a slower rank counts too
  EXPECT_DOUBLE_EQ(times.hidden_share(), 0);
}

}  // namespace
}  // namespace lockstep::measure
