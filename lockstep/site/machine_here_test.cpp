// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/machine_here.h"

#include <gtest/gtest.h>

#include "lockstep/site/fake_scheduler.h"

namespace lockstep::site {
namespace {

TEST(MachineHereTest, SavesADocumentThatLoadsAgainUnchanged) {
  const auto catalogue = catalogue::load_embedded();
  const spec::Machine machine = describe_machine(probe_site(), catalogue, "2026-11-15");
  const base::TemporaryFolder folder;
  const base::Path file = folder.path() / "machine.json";
  spec::save_machine(file, machine);
  const spec::Machine loaded = spec::load_machine(file);
  EXPECT_EQ(loaded, machine);
  EXPECT_NO_THROW(catalogue::check_machine(loaded, catalogue));
  EXPECT_GT(loaded.memory_per_node, 0);
  EXPECT_GE(loaded.cores_per_node, 1);
}

TEST(MachineHereTest, NamesGpusByTheirCatalogueId) {
  Probe probe;
  GpuDevice gpu;
  gpu.name = "NVIDIA A100-SXM4-80GB";
  probe.gpus.devices = {gpu, gpu, gpu, gpu};
  const spec::Machine machine = describe_machine(probe, catalogue::load_embedded(), "2026-11-15");
  EXPECT_EQ(machine.gpu, "a100-80");
  EXPECT_EQ(machine.gpus_per_node, 4);
}

TEST(MachineHereTest, LeavesAnUnknownGpuToTheNotes) {
  Probe probe;
  GpuDevice gpu;
  gpu.name = "NVIDIA Z9";
  probe.gpus.devices = {gpu};
  const spec::Machine machine = describe_machine(probe, catalogue::load_embedded(), "2026-11-15");
  EXPECT_EQ(machine.gpu, "");
  EXPECT_EQ(machine.notes.substr(0, 40), "1 x NVIDIA Z9 is not in the catalogue: a");
}

TEST(MachineHereTest, DescribesTheClusterOnItsLoginNode) {
  Probe probe;
  probe.scheduler.name = SchedulerName::slurm;
  probe.scheduler.commands = true;
  probe.partitions = parse_sinfo("debug|30:00|2|4|4000|(null)\nmain*|2-00:00:00|16|64|256000|gpu:v100-32:4\n");
  const spec::Machine machine = describe_machine(probe, catalogue::load_embedded(), "2026-11-15");
  EXPECT_EQ(machine.nodes, 16);
  EXPECT_EQ(machine.cores_per_node, 64);
  EXPECT_EQ(machine.gpu, "v100-32");
  EXPECT_EQ(machine.gpus_per_node, 4);
  EXPECT_EQ(machine.scheduler.partition, "main");
  EXPECT_EQ(machine.scheduler.walltime, 172800);
  EXPECT_EQ(machine.scheduler.resources, spec::ResourceForm::gres);
  EXPECT_EQ(machine.scheduler.gpu_type, "v100-32");
  probe.partitions = parse_sinfo("main*|2-00:00:00|16|64|256000|gpu:big:4\n");
  EXPECT_NE(describe_machine(probe, catalogue::load_embedded(), "2026-11-15").notes.find("'big'"), std::string::npos);
}

TEST(MachineHereTest, DescribesTheDefaultQueueOfPbs) {
  FakeScheduler site;
  site.install_recorded();
  const spec::Machine machine = describe_machine(probe_site(), catalogue::load_embedded(), "2026-11-16");
  EXPECT_EQ(machine.scheduler.kind, spec::SchedulerKind::pbs);
  EXPECT_EQ(machine.scheduler.partition, "workq");
  EXPECT_EQ(machine.scheduler.walltime, 0);
  EXPECT_EQ(machine.scheduler.resources, spec::ResourceForm::standard);
  EXPECT_EQ(machine.nodes, 2);
  EXPECT_EQ(machine.cores_per_node, 36);
  EXPECT_EQ(machine.memory_per_node, 200'000'000'000);  // 187 GiB, down to whole GB
  EXPECT_EQ(machine.cpu, "");
  EXPECT_EQ(site.unrecorded_calls(), "");
}

TEST(MachineHereTest, ChargesTheOnlyProjectAndLeavesAChoiceToTheUser) {
  Probe probe;
  probe.accounts = {{"abc123", {"normal", "gpu"}, "normal"}};
  const spec::Machine one = describe_machine(probe, catalogue::load_embedded(), "2026-11-15");
  EXPECT_EQ(one.scheduler.account, "abc123");
  EXPECT_EQ(one.scheduler.qos, "normal");
  probe.accounts.push_back({"def", {}, ""});
  const spec::Machine two = describe_machine(probe, catalogue::load_embedded(), "2026-11-15");
  EXPECT_EQ(two.scheduler.account, "");
  EXPECT_EQ(two.notes, "set scheduler.account, one of abc123, def");
}

TEST(MachineHereTest, TellsProgramsTheFacts) {
  const base::Json facts = facts_json(probe_site());
  EXPECT_GT(facts.at("memory_bytes").as_int(), 0);
  EXPECT_GE(facts.at("storages").size(), 1u);
}

}  // namespace
}  // namespace lockstep::site
