// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

using base::text;
using testing::HasSubstr;

constexpr const char* kSmallJob = R"({
  "name": "pets",
  "data": {"train": "data/train"},
  "model": {"name": "resnet18"},
  "training": {"epochs": 4}
})";

Job job_of(const std::string& content, const std::vector<std::string>& sets = {}) {
  return parse_job(base::parse_json(content, "job.json"), sets);
}

// The message of the user error that the document deserves.
std::string job_complaint(const std::string& content, const std::vector<std::string>& sets = {}) {
  try {
    job_of(content, sets);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_FALSE(error.fix().empty()) << error.what();
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << content;
  return "";
}

// A document whose `training` section is the given text.
std::string with_training(const std::string& training) {
  return text("{\"name\": \"pets\", \"data\": {\"train\": \"data/train\"}, \"model\": {\"name\": \"resnet18\"},\n",
              " \"training\": {", training, "}}");
}

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
  EXPECT_THAT(job_complaint(with_training("\"epochs\": -1")), HasSubstr("training.epochs: must be at least 0, is -1"));
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

TEST(JobTest, VirtualRanksAreAPowerOfTwoThatFitsTheBatch) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 6")),
              HasSubstr("training.virtual_ranks: is 6, no power of two\n  fix: use 4 or 8"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 64")),
              HasSubstr("training.virtual_ranks: is 64, more slices than training.global_batch has samples\n"
                        "  fix: use 32 or fewer"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 4, \"micro_batch\": 8")),
              HasSubstr("training.micro_batch: with virtual_ranks the slices are the micro-batches"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"virtual_ranks\": 4, \"batch_norm\": \"sync\"")),
              HasSubstr("training.batch_norm: is sync, which would undo the slices of virtual_ranks"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [{\"train_from\": \"head\", \"cache_features\": true}], "
                                          "\"virtual_ranks\": 4")),
              HasSubstr("training.phases[0].cache_features: the bits of cached features depend on the ranks"));
  EXPECT_EQ(job_of(with_training("\"epochs\": 1, \"virtual_ranks\": 32")).training.threads_per_slice, 1);
}

TEST(JobTest, ChecksRulesBetweenFields) {
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 1, \"micro_batch\": 64")),
              HasSubstr("job.json:2:43: training.micro_batch: is 64, more than training.global_batch, 32"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 2, \"schedule\": {\"warmup_epochs\": 2}")),
              HasSubstr("training.schedule.warmup_epochs: is 2, not shorter than the run of 2 epochs"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [{\"epochs\": 1}], \"schedule\": {\"warmup_epochs\": 2}")),
              HasSubstr("not shorter than training.phases[0] of 1 epochs"));
  EXPECT_THAT(job_complaint(with_training("\"phases\": [{\"epochs\": 1, \"cache_features\": true}]")),
              HasSubstr("job.json:2:58: training.phases[0].cache_features"));
  EXPECT_THAT(
      job_complaint(with_training("\"phases\": [{\"epochs\": 1, \"freeze_norm\": true}]"), {"model.name=googlenet"}),
      HasSubstr("training.phases[0].freeze_norm: leaves auxiliary heads without a gradient"));
  EXPECT_THAT(job_complaint(with_training("\"epochs\": 9, \"schedule\": {\"name\": \"step\"}")),
              HasSubstr("has no steps"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.step_epochs=[2, 1]"}), HasSubstr("must increase"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.step_epochs=[1, 4]"}), HasSubstr("ends after the run"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.mean=[0.5]"}),
              HasSubstr("data.mean: 3 numbers are expected, these are 1"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.train=synthetic", "model.classes=2"}), HasSubstr("give data.samples"));
  EXPECT_THAT(job_complaint(kSmallJob, {"data.train=synthetic", "data.samples=9"}), HasSubstr("give model.classes"));
  EXPECT_EQ(job_of(kSmallJob, {"data.samples=9"}).data.samples, 9);  // of a folder: for plan, where it is not there
  EXPECT_THAT(job_complaint(kSmallJob, {"name=../x"}), HasSubstr("name: '../x' cannot name a folder"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.optimizer.nesterov=true", "training.optimizer.momentum=0"}),
              HasSubstr("needs sgd or lars with momentum"));
}

TEST(JobTest, NamesLargeBatchRulesThatLackTheirOtherHalf) {
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.scale=linear"}),
              HasSubstr("training.schedule.scale: the linear rule needs the batch that optimizer.lr was found for\n"
                        "  fix: for example \"base_batch\": 256"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.scale=sqrt", "training.schedule.base_batch=0"}),
              HasSubstr("the sqrt rule needs"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.schedule.base_batch=256"}), HasSubstr("without a rule"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.optimizer.trust=0.02"}), HasSubstr("is of lars alone"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.batch_norm=ghost"}), HasSubstr("ghost needs the size of its slices"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.ghost_batch=8"}), HasSubstr("training.batch_norm is not ghost"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.batch_norm=ghost", "training.ghost_batch=33"}),
              HasSubstr("training.ghost_batch: is 33, more than training.global_batch, 32\n  fix: give 32 at most"));
  EXPECT_THAT(
      job_complaint(kSmallJob, {"training.batch_norm=ghost", "training.ghost_batch=9", "training.micro_batch=8"}),
      HasSubstr("training.ghost_batch: is 9, more than training.micro_batch, 8"));
}

TEST(JobTest, VirtualRanksTakeNeitherSyncBatchNormNorRoundedSums) {
  EXPECT_THAT(job_complaint(kSmallJob, {"training.virtual_ranks=4", "training.batch_norm=sync"}),
              HasSubstr("training.batch_norm: is sync, which would undo the slices of virtual_ranks"));
  EXPECT_THAT(job_complaint(kSmallJob, {"training.virtual_ranks=4", "training.reduce_precision=bf16"}),
              HasSubstr("training.reduce_precision: is bf16, but virtual_ranks exchange their partial sums whole"));
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
  const std::set<std::string> other_documents{"machine", "project", "table", "beside"};
  int found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("examples")) {
    if (entry.path().extension() != ".json" || other_documents.count(entry.path().stem().string()) > 0) continue;
    const base::Json source = base::read_json(entry.path());
    EXPECT_EQ(changed_json(parse_job(source)).dump(), source.dump())
        << entry.path() << ": leave defaults out, keep the order of docs/config.md";
    ++found;
  }
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace lockstep::spec
