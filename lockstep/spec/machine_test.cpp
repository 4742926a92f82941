// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::spec {
namespace {

constexpr const char* kCluster = R"({
  "name": "minotauro",
  "nodes": 39,
  "gpus_per_node": 4,
  "gpu": "k80",
  "cpu": "xeon-e5-2630v3",
  "sockets_per_node": 2,
  "cores_per_node": 16,
  "memory_per_node": "128 GB",
  "links": {
    "inter": {
      "name": "InfiniBand FDR",
      "rate": "7 GB/s",
      "latency": "0.000001 s"
    }
  },
  "file_system": {
    "kind": "gpfs",
    "read_rate": "1.5 GB/s"
  },
  "scheduler": {
    "kind": "slurm",
    "walltime": "48:00:00"
  },
  "source": "user guide",
  "date": "2018-03"
})";

std::string machine_complaint(const std::string& content) {
  try {
    parse_machine(base::parse_json(content, "machine.json"));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.message();
  }
  return "";
}

TEST(MachineTest, ReadsQuantitiesWithUnitsAndPrintsThemBack) {
  const Machine machine = parse_machine(base::parse_json(kCluster, "machine.json"));
  EXPECT_EQ(machine.memory_per_node, 128'000'000'000);
  EXPECT_EQ(machine.links.inter.rate, 7e9);
  EXPECT_EQ(machine.scheduler.kind, SchedulerKind::slurm);
  EXPECT_EQ(machine.scheduler.walltime, 172800);
  EXPECT_EQ(changed_json(machine).dump(), kCluster);
}

TEST(MachineTest, SavedMachineLoadsEqual) {
  const base::TemporaryFolder folder;
  const Machine machine = parse_machine(base::parse_json(kCluster, "machine.json"));
  save_machine(folder.path() / "machine.json", machine);
  EXPECT_EQ(load_machine(folder.path() / "machine.json"), machine);
  EXPECT_EQ(parse_machine(to_json(machine)), machine);
}

TEST(MachineTest, CannotBeSavedWhereNothingCanBeWritten) {
  EXPECT_THROW(save_machine("/proc/machine.json", Machine{}), base::Error);
}

TEST(MachineTest, RefusesBadDocuments) {
  EXPECT_THAT(
      machine_complaint(R"({"name": "a", "memory_per_node": 128})"),
      testing::HasSubstr("machine.json:1:34: memory_per_node: an amount of memory with its unit, as a string, is "
                         "expected, this is an integer\n  fix: add the unit: \"128 GB\""));
  EXPECT_THAT(machine_complaint(R"({"name": "a", "gpus_per_node": 4})"), testing::HasSubstr("the GPUs have no name"));
  EXPECT_THAT(machine_complaint(R"({"name": "a", "date": "yesterday"})"), testing::HasSubstr("is not a date"));
  EXPECT_THAT(machine_complaint(R"({"name": "a", "nodes": 2, "scheduler": {"max_nodes": 3}})"),
              testing::HasSubstr("is more than the 2 nodes"));
  EXPECT_THAT(machine_complaint(R"({"name": "a", "scheduler": {"kind": "lsf"}})"),
              testing::HasSubstr("'lsf' is not one of none, slurm, pbs"));
}

TEST(MachineTest, SaysHowASiteWantsItsJobs) {
  const Machine machine = parse_machine(base::parse_json(R"({"name": "site", "submit_from": "login", "scheduler": {
    "kind": "slurm", "account": "abc123", "qos": "gpu", "constraint": "v100&nvlink", "reservation": "course",
    "resources": "gpus_per_node", "gpu_type": "v100", "launcher": "srun", "modules": ["module load openmpi/4.1"],
    "environment": ["NAME=two words"], "container": "apptainer exec x.sif", "signal_lead": "3 min",
    "extra": "--mail-type=END"}})",
                                                         "machine.json"));
  EXPECT_EQ(machine.submit_from, SubmitFrom::login);
  EXPECT_EQ(machine.scheduler.resources, ResourceForm::gpus_per_node);
  EXPECT_EQ(machine.scheduler.launcher, Launcher::srun);
  EXPECT_EQ(machine.scheduler.signal_lead, 180);
  EXPECT_THAT(machine.scheduler.extra, testing::ElementsAre("--mail-type=END"));
  EXPECT_EQ(parse_machine(changed_json(machine)), machine);
}

TEST(MachineTest, RefusesWhatWouldBreakABatchScript) {
  const auto scheduler = [](const std::string& fields) {
    return machine_complaint(R"({"name": "a", "scheduler": {)" + fields + "}}");
  };
  EXPECT_THAT(scheduler(R"("account": "a b")"), testing::HasSubstr("'a b' is not one plain word"));
  EXPECT_THAT(scheduler(R"("extra": ["--x\nrm -rf /"])"), testing::HasSubstr("holds a line end"));
  EXPECT_THAT(scheduler(R"("environment": ["9X=1"])"), testing::HasSubstr("'9X=1' does not set a variable"));
  EXPECT_THAT(scheduler(R"("kind": "pbs", "resources": "gres")"), testing::HasSubstr("gres is not a form of pbs"));
  EXPECT_THAT(scheduler(R"("kind": "pbs", "launcher": "srun")"), testing::HasSubstr("srun belongs to slurm"));
  EXPECT_THAT(scheduler(R"("kind": "slurm", "resources": "job_wide")"),
              testing::HasSubstr("job_wide is not a form of slurm"));
  EXPECT_THAT(scheduler(R"("kind": "slurm", "project": "ab12")"), testing::HasSubstr("no projects"));
  EXPECT_THAT(scheduler(R"("kind": "pbs", "project": "a b")"), testing::HasSubstr("is not one plain word"));
  EXPECT_THAT(scheduler(R"("kind": "pbs", "remote_shell": "rsh")"),
              testing::HasSubstr("'rsh' is not one of standard, ssh, pbs_tmrsh"));
}

}  // namespace
}  // namespace lockstep::spec
