// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/spec/recipe.h"
#include "lockstep/spec/small_job.h"

namespace lockstep::spec {
namespace {

using testing::HasSubstr;

TEST(JobTest, KeepsDefaultsOfWhatIsNotStated) {
  const Job job = job_of(kSmallJob);
  Job expected;
  expected.name = "pets";
  expected.data.train = "data/train";
  expected.model.name = "resnet18";
  expected.training.epochs = 4;
  EXPECT_EQ(job, expected);
}

TEST(JobTest, ReadsEveryKindOfField) {
  const Job job = job_of(R"({ // comments are allowed
    "$schema": "job.schema.json",
    "name": "all", "task": "classify",
    "data": {"train": "a", "mean": [0.5, 0.5, 1], "flip": false, "augment": "strong"},
    "model": {"name": "m", "classes": 37},
    "training": {"precision": "bf16", "optimizer": {"name": "adamw", "lr": 1e-3},
                 "phases": [{"epochs": 2, "train_from": "head", "cache_features": true}, {"epochs": 0.5}]},
    "limits": {"walltime": "48:00:00"}})");
  EXPECT_EQ(job.data.mean, (std::vector<double>{0.5, 0.5, 1}));
  EXPECT_FALSE(job.data.flip);
  EXPECT_EQ(job.data.augment, Augment::strong);
  EXPECT_EQ(job.training.precision, Precision::bf16);
  EXPECT_EQ(job.training.optimizer.name, OptimizerName::adamw);
  ASSERT_EQ(job.training.phases.size(), 2u);
  EXPECT_EQ(job.training.phases[0].train_from, "head");
  EXPECT_EQ(job.training.phases[1].epochs, 0.5);
  EXPECT_EQ(job.limits.walltime, 172800);
}

TEST(JobTest, AListOfWordsMayBeOneWord) {
  const auto recompute_of = [](const std::string& value) {
    return parse_job(base::parse_json(kSmallJob, "job.json"), {"training.recompute=" + value}).training.recompute;
  };
  EXPECT_EQ(recompute_of("all"), (std::vector<std::string>{"all"}));
  EXPECT_EQ(recompute_of(R"(["layer1.0", "head"])"), (std::vector<std::string>{"layer1.0", "head"}));
  EXPECT_TRUE(recompute_of("[]").empty());
  EXPECT_THROW(recompute_of("[1]"), base::Error);
}

TEST(JobTest, ResolvedJobReadsBackEqual) {
  Job job = job_of(kSmallJob);
  job.training.epochs = 0;
  job.training.phases = {{1, "head", 1, true}, {3.5, "", 0.1, false}};
  job.training.optimizer.lr = 1.0 / 3;
  job.limits.walltime = 5400.25;
  job.training.seed = int64_t{1} << 60;
  const base::Json resolved = to_json(job);
  EXPECT_EQ(parse_job(base::parse_json(resolved.dump(), "job.json")), job);
  EXPECT_TRUE(resolved.at("training").contains("clip_norm"));
}

TEST(JobTest, ShortDocumentHoldsOnlyWhatDiffers) {
  const base::Json source = base::parse_json(kSmallJob, "job.json");
  EXPECT_EQ(changed_json(parse_job(source)), source);
}

TEST(JobTest, NamesPlaceKeyAndNearestNameOfATypo) {
  EXPECT_EQ(job_complaint(with_training("\"epochs\": 1,\n  \"global_bach\": 8")),
            "lockstep: user error: job.json:3:3: training.global_bach: unknown key\n"
            "  fix: did you mean 'global_batch'?");
}

TEST(JobTest, SaysWhereAMisplacedKeyBelongs) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"warmup_epochs\": 8")),
              HasSubstr("fix: it belongs to training.schedule.warmup_epochs"));
}

TEST(JobTest, RefusesWrongTypes) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"global_batch\": \"big\"")),
              HasSubstr("job.json:2:44: training.global_batch: an integer is expected, this is a string\n"
                        "  fix: write the number without quotes"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"global_batch\": 2.5")),
              HasSubstr("an integer is expected"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": null")), HasSubstr("leave the key out"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"optimizer\": \"sgd\"")),
              HasSubstr("an object is expected"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [3]")),
              HasSubstr("training.phases[0]: an object is expected, this is an integer"));
  EXPECT_THAT(job_complaint("[]"), HasSubstr("job.json:1:1: an object is expected, this is a list"));
}

TEST(JobTest, RefusesAnUnknownChoice) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"precision\": \"bf61\"")),
              HasSubstr("training.precision: 'bf61' is not one of fp32, tf32, bf16, amp\n  fix: did you mean 'bf16'?"));
}

TEST(JobTest, RefusesValuesOutOfRange) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"global_batch\": -5")),
              HasSubstr("training.global_batch: must be at least 1"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": -1")),
              HasSubstr("training.epochs: must be at least 0 and at most 1e+06, is -1"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1e20")),
              HasSubstr("training.epochs: must be at least 0 and at most"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"label_smoothing\": 1")), HasSubstr("less than 1, is 1"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.std=[0.2, 0, 0.2]"}),
              HasSubstr("data.std: must be 3 values and greater than 0"));
}

TEST(JobTest, RefusesATimeWithoutAUnit) {
  const std::string start = R"({"name": "a", "data": {"train": "a"}, "model": {"name": "m"}, "training": {"epochs": 1},
"limits": {"walltime": )";
  EXPECT_THAT(
      job_complaint(start + "48}}"),
      HasSubstr("job.json:2:24: limits.walltime: a duration with its unit, as a string, is expected, this is an "
                "integer\n  fix: add the unit: \"48 h\" or \"48:00:00\""));
  EXPECT_THAT(job_complaint(start + "\"48\"}}"),
              HasSubstr("limits.walltime: '48' has no unit\n  fix: write \"48:00:00\""));
}

TEST(JobTest, NeedsExactlyOneLength) {
  EXPECT_THAT(job_complaint(with_training("")), HasSubstr("training: none of epochs, steps, phases is given"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 4, \"steps\": 9")),
              HasSubstr("job.json:2:37: training.steps: both epochs and steps are given"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 4, \"phases\": [{}]")),
              HasSubstr("training.phases: both epochs and phases are given"));
  EXPECT_EQ(job_of(with_training("\"epochs\": 0, \"steps\": 9, \"phases\": []")).training.steps, 9);
}

TEST(JobTest, NamesWhatIsMissing) {
  const std::string message = job_complaint("{}");
  EXPECT_THAT(message, HasSubstr("4 problems in the document"));
  EXPECT_THAT(message, HasSubstr("job.json:1:1: name: is missing"));
  EXPECT_THAT(message, HasSubstr("job.json:1:1: data.train: is missing"));
  EXPECT_THAT(message, HasSubstr("job.json:1:1: model.name: is missing"));
  EXPECT_THAT(job_complaint(kSmallJob, {"name="}), HasSubstr("name: must not be empty"));
}

TEST(JobTest, TellsEveryProblemAtOnce) {
  const std::string message = job_complaint(with_training("\"epoch\": 1,\n \"global_batch\": -1, \"steps\": 1"));
  EXPECT_THAT(message, HasSubstr("2 problems"));
  EXPECT_THAT(message, HasSubstr("job.json:2:15: training.epoch: unknown key\n    fix: did you mean 'epochs'"));
  EXPECT_THAT(message, HasSubstr("job.json:3:18: training.global_batch: must be"));
}

TEST(JobTest, RefusesDocumentsThatAreTooLargeTooDeepOrNotText) {
  EXPECT_THAT(job_complaint("{\"name\": \"" + std::string(1 << 20, 'a') + "\"}"), HasSubstr("more than 1048576"));
  EXPECT_THAT(job_complaint(std::string(100000, '[')), HasSubstr("nested deeper than 64 levels"));
  EXPECT_THAT(job_complaint("{\"name\": \"\xff\"}"), HasSubstr("job.json:1:11: the document is not valid UTF-8"));
  EXPECT_THAT(job_complaint("{\"name\": \"a\",\n\"name\": \"b\"}"), HasSubstr("job.json:2:1: duplicate key 'name'"));
}

TEST(JobTest, LoadsAFileAndNamesAMissingOne) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "job.json", kSmallJob);
  EXPECT_EQ(load_job(folder.path() / "job.json", {"training.seed=7"}).training.seed, 7);
  EXPECT_THROW(load_job(folder.path() / "none.json"), base::Error);
}

TEST(JobTest, EveryExampleLoadsAndPrintsBackUnchanged) {
  const std::set<std::string> other_documents{"machine", "project", "table", "beside", "branin", "regions"};
  const auto is_workflow = [](const std::string& stem) { return stem.ends_with("workflow"); };
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("examples")) {
    const std::string stem = entry.path().stem().string();
    if (entry.path().extension() != ".json" || other_documents.count(stem) > 0 || is_workflow(stem)) continue;
    base::Json source = base::read_json(entry.path());
    add_recipe(source);  // of a bare job that starts from weights
    EXPECT_EQ(changed_json(parse_job(source)).dump(), source.dump())
        << entry.path() << ": leave defaults out, keep the order of docs/config.md";
    ++found;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace lockstep::spec
