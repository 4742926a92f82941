// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/workflow_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Workflow stages_from(const std::string& stages) {
  return parse_workflow(base::parse_json(base::text("{\"stages\": {", stages, "}}"), "workflow.json"));
}

std::string workflow_complaint(const std::string& stages) {
  try {
    stages_from(stages);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return base::text(error.what(), " | ", error.fix());
  }
  return "";
}

constexpr const char* kDiamond = R"(
    "join": {"command": ["cat"], "inputs": ["left.txt", "right.txt"], "outputs": ["out"]},
    "left": {"command": ["cp"], "inputs": ["data/part"], "outputs": ["left.txt"]},
    "right": {"command": ["cp"], "inputs": ["./data/"], "outputs": ["right.txt"], "after": ["left"]},
    "make": {"command": ["make"], "outputs": ["data"]})";

TEST(WorkflowRulesTest, AStageWaitsForWhoWritesWhatItReads) {
  const Workflow workflow = stages_from(kDiamond);
  EXPECT_THAT(stage_needs(workflow), ElementsAre(ElementsAre(1, 2), ElementsAre(3), ElementsAre(1, 3), ElementsAre()));
  EXPECT_THAT(stage_order(workflow), ElementsAre(3, 1, 2, 0));
}

TEST(WorkflowRulesTest, NamesACycleAndAnOutputOfTwoStages) {
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "inputs": ["c"], "outputs": ["a"]},
      "b": {"command": ["x"], "inputs": ["a"], "outputs": ["b"]},
      "c": {"command": ["x"], "inputs": ["b"], "outputs": ["c"]})"),
              HasSubstr("the stages wait for each other: a needs c needs b needs a"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "after": ["a"]})"), HasSubstr("a needs a"));
  EXPECT_THAT(
      workflow_complaint(R"("a": {"command": ["x"], "outputs": ["f"]}, "b": {"command": ["x"], "outputs": ["./f"]})"),
      HasSubstr("workflow.json:1:91: stages.b.outputs: './f' is also written by stage 'a' ('f')"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "outputs": ["d/f", "d"]})"),
              HasSubstr("'d' is also written by stage 'a' ('d/f')"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "inputs": ["d"], "outputs": ["d/f"]})"),
              HasSubstr("it would write 'd/f', which it reads ('d')"));
}

TEST(WorkflowRulesTest, NamesWhatMeansNothing) {
  EXPECT_THAT(workflow_complaint(""), HasSubstr("there is nothing to do"));
  EXPECT_THAT(workflow_complaint(R"("a b": {"command": ["x"]})"), HasSubstr("is no name of a stage"));
  EXPECT_THAT(workflow_complaint(R"("a": {"comand": ["x"]})"), HasSubstr("did you mean 'command'"));
  EXPECT_THAT(workflow_complaint(R"("a": {})"), HasSubstr("none of copy, prep, train, eval, predict, command"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "eval": ["y"]})"), HasSubstr("both eval and command"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x", "{outptu}"]})"), HasSubstr("{outptu} stands for nothing"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x", "{output}"]})"), HasSubstr("the stage has 0 outputs"));
  EXPECT_THAT(workflow_complaint(R"("a": {"train": ["job.json"]})"), HasSubstr("it names no run folder"));
  EXPECT_THAT(workflow_complaint(R"("a": {"train": ["j", "--run", "r"], "resources": {"nodes": 2, "ranks": 4}})"),
              HasSubstr(R"(for 8 ranks, and it would train in one process | add "--ranks", "{ranks}")"));
  EXPECT_THAT(workflow_complaint(R"("a": {"train": ["j", "--run", "r"], "resources": {"gpus": 1}})"),
              HasSubstr(R"(it would train on the CPU | add "--device", "cuda")"));
  EXPECT_THAT(workflow_complaint(R"("a": {"eval": ["r", "--device=cuda"]})"), HasSubstr("it would see none"));
  EXPECT_THAT(workflow_complaint(R"("a": {"copy": ["x"]})"), HasSubstr("copy writes one output"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "after": ["b"]})"), HasSubstr("no stage 'b'"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "resources": {"jobs": 2}})"),
              HasSubstr("each would start over"));
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "scaling": {"many": 2}})"), HasSubstr("'many'"));
}

// To start over puts what it goes on from aside: an input in it would go along.
TEST(WorkflowRulesTest, AStageDoesNotReadWhatItGoesOnFrom) {
  EXPECT_THAT(workflow_complaint(R"("a": {"command": ["x"], "restartable": true, "state": ["s"], "inputs": ["s/in"]})"),
              HasSubstr("stages.a.state: it goes on from 's' and reads 's/in'"));
  EXPECT_THAT(workflow_complaint(R"("a": {"train": ["j", "--run=data/run"], "inputs": ["data"]})"),
              HasSubstr("stages.a.train: it goes on from 'data/run' and reads 'data'"));
  EXPECT_EQ(workflow_complaint(R"("a": {"train": ["j", "--run=run"], "inputs": ["data"]})"), "");
}

TEST(WorkflowRulesTest, FillsInFilesAndNumbers) {
  const Workflow workflow = stages_from(
      R"("a": {"command": ["tool", "{inputs}", "--to={output}", "-n", "{ranks}", "{inputs[1]}", "{\"json\": 1}", "${i}"],
         "inputs": ["x", "y"], "outputs": ["z"], "resources": {"nodes": 2, "ranks": 3}})");
  EXPECT_THAT(fill_placeholders(workflow.stages[0].words(), placeholder_values(workflow.stages[0])),
              ElementsAre("tool", "x", "y", "--to=z", "-n", "6", "y", "{\"json\": 1}", "${i}"));
}

TEST(WorkflowRulesTest, PredictGoesOnWhereItWritesRecords) {
  const Workflow workflow = stages_from(
      R"("list": {"predict": ["r", "texts.jsonl", "--to", "{output}"], "inputs": ["texts.jsonl"], "outputs": ["found.csv"]},
         "records": {"predict": ["r", "in", "--to={outputs[1]}"], "outputs": ["page.html", "found.jsonl"]},
         "shown": {"predict": ["r", "in.jsonl"], "outputs": ["log.jsonl"]})");
  EXPECT_FALSE(workflow.stages[0].goes_on());
  EXPECT_TRUE(workflow.stages[1].goes_on());
  EXPECT_EQ(record_file(workflow.stages[1]), "found.jsonl");
  EXPECT_FALSE(workflow.stages[2].goes_on());
}

TEST(WorkflowRulesTest, KnowsWhatAStageGoesOnFrom) {
  const Workflow workflow = stages_from(
      R"("t": {"train": ["job.json", "--run", "runs/x/"]}, "p": {"predict": ["runs/x", "in", "--to", "found.jsonl"]},
         "c": {"command": ["x"], "restartable": true, "state": ["half"]}, "o": {"command": ["x"]})");
  EXPECT_THAT(state_paths(workflow.stages[0]), ElementsAre("runs/x"));
  EXPECT_THAT(state_paths(workflow.stages[1]), ElementsAre("found.jsonl", "found.files"));
  EXPECT_THAT(state_paths(workflow.stages[2]), ElementsAre("half"));
  EXPECT_THAT(state_paths(workflow.stages[3]), ElementsAre());
  EXPECT_EQ(stage_path("./data/raw/"), "data/raw");
  EXPECT_EQ(stage_path("/"), "/");
}

}  // namespace
}  // namespace lockstep::spec
