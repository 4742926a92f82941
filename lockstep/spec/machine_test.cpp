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

}  // namespace
}  // namespace lockstep::spec
