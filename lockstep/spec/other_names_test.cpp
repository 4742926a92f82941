// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/other_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"

namespace lockstep::spec {
namespace {

using ::testing::HasSubstr;

TEST(OtherNamesTest, KnowsTheWordsOfOtherPrograms) {
  const auto key = [](const char* word) { return key_by_other_name(job_section(), word).value_or(""); };
  EXPECT_EQ(key("learning_rate"), "training.optimizer.lr");
  EXPECT_EQ(key("Learning-Rate"), "training.optimizer.lr");
  EXPECT_EQ(key("batch_size"), "training.global_batch");
  EXPECT_EQ(key("num_workers"), "data.threads");
  EXPECT_EQ(key("max_grad_norm"), "training.clip_norm");
  EXPECT_EQ(key("clip_grad_value"), "training.clip_value");
  EXPECT_EQ(key("pretrained"), "model.weights");
  EXPECT_EQ(key("freeze"), "training.phases");
  EXPECT_EQ(key("per_device_train_batch_size"), "training.micro_batch");
  EXPECT_EQ(key("rate"), "");  // a part of a word is none
  EXPECT_EQ(key(""), "");
}

TEST(OtherNamesTest, NamesNoKeyOfAnotherDocument) {
  EXPECT_FALSE(key_by_other_name(machine_section(), "learning_rate"));
}

TEST(OtherNamesTest, AJobSaysWhereSuchAKeyBelongs) {
  const auto fix_for = [](const std::string& document, const std::vector<std::string>& sets) {
    try {
      parse_job(base::parse_json(document, "job.json"), sets);
    } catch (const base::Error& error) {
      return std::string(error.what()) + error.fix();
    }
    return std::string();
  };
  const std::string job = R"({"name":"x","data":{"train":"d"},"model":{"name":"resnet18"},"training":{"epochs":1)";
  EXPECT_THAT(fix_for(job + R"(,"learning_rate":0.1}})", {}), HasSubstr("it is called training.optimizer.lr here"));
  EXPECT_THAT(fix_for(job + R"(},"batch_size":32})", {}), HasSubstr("it is called training.global_batch here"));
  EXPECT_THAT(fix_for(job + "}}", {"batch_size=32"}), HasSubstr("it is called training.global_batch here"));
  EXPECT_THAT(fix_for(job + "}}", {"training.learning_rate=1"}), HasSubstr("--set training.optimizer.lr=1"));
  EXPECT_THAT(fix_for(job + "}}", {"training.learning_rate=$(id); 1"}),
              HasSubstr("--set 'training.optimizer.lr=$(id); 1'"));
}

}  // namespace
}  // namespace lockstep::spec
