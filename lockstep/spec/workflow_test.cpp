// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/workflow.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/workflow_rules.h"

namespace lockstep::spec {
namespace {

Workflow workflow_from(const std::string& words) {
  return parse_workflow(base::parse_json(words, "workflow.json"));
}

TEST(WorkflowTest, ReadsStagesAndGivesThemBack) {
  const Workflow workflow = workflow_from(R"({"name": "radar", "stages": {
      "download": {"command": ["fetch", "{output}"], "outputs": ["raw"], "expected": "13 h"},
      "train": {"train": ["job.json", "--run", "runs/r", "--ranks", "{ranks}", "--device", "cuda"], "inputs": ["raw"],
                "outputs": ["runs/r/weights.safetensors"], "scaling": {"8": 205.4, "16": 410.5},
                "resources": {"gpus": 8, "memory": "64 GB", "walltime": "24:00:00", "jobs": 2}}}})");
  ASSERT_EQ(workflow.stages.size(), 2U);
  const Stage& train = workflow.stages[1];
  EXPECT_EQ(workflow.stages[0].expected, 13 * 3600);
  EXPECT_EQ(workflow.stages[0].kind(), "command");
  EXPECT_FALSE(workflow.stages[0].goes_on());
  EXPECT_EQ(train.kind(), "train");
  EXPECT_TRUE(train.goes_on());
  EXPECT_EQ(train.resources.all_ranks(), 8);
  EXPECT_EQ(train.resources.memory, 64'000'000'000);
  EXPECT_EQ(train.scaling[1].second, 410.5);
  EXPECT_EQ(workflow.find("train"), 1U);
  EXPECT_THROW(workflow.find("trian"), base::Error);
  EXPECT_EQ(parse_workflow(to_json(workflow)), workflow);
}

TEST(WorkflowTest, AWholePathInItsFolderIsTheSameFile) {
  const base::TemporaryFolder folder;
  const base::Path real = folder.path() / "real";
  base::make_folders(real);
  std::filesystem::create_directory_symlink(real, folder.path() / "link");
  for (const char* name : {"real", "link"}) {
    const std::string whole = (folder.path() / name).string();
    base::write_file(real / "w.json", base::text(R"({"stages": {"use": {"command": ["x"], "inputs": ["data/part"]},
                                    "make": {"command": ["x"], "outputs": [")",
                                                 whole, R"(/./data"]},
                                    "far": {"command": ["x"], "outputs": ["/data", ")",
                                                 whole, R"(er/data"]}}})"));
    const Workflow workflow = load_workflow(folder.path() / name / "w.json");
    EXPECT_EQ(workflow.stages[1].outputs, std::vector<std::string>{"data"});
    EXPECT_EQ(workflow.stages[2].outputs, (std::vector<std::string>{"/data", whole + "er/data"}));
    EXPECT_EQ(stage_needs(workflow)[0], std::vector<size_t>{1});
  }
}

TEST(WorkflowTest, ASetReplacesAValueOfAStage) {
  const auto document = base::parse_json(R"({"stages": {"a": {"command": ["true"]}}})", "workflow.json");
  EXPECT_EQ(parse_workflow(document, {"stages.a.resources.cores=4"}).stages[0].resources.cores, 4);
  EXPECT_THROW(parse_workflow(document, {"stages.b.retries=1"}), base::Error);
}

}  // namespace
}  // namespace lockstep::spec
