// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/machine_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep::planning {
namespace {

using testing::HasSubstr;

std::vector<forecast::MachineOption> find(std::vector<std::string> on, std::vector<int64_t> gpus = {}) {
  Here here;
  here.machine.name = "laptop";
  here.machine.cpu = "i7-8700";
  here.machine.cores_per_node = 6;
  return find_machine_options({.on = std::move(on), .gpus = std::move(gpus), .here = [=] { return here; }},
                              catalogue::load_embedded());
}

std::string complaint(std::vector<std::string> on, std::vector<int64_t> gpus = {}) {
  try {
    find(std::move(on), std::move(gpus));
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.message();
  }
  return "nothing thrown";
}

TEST(MachineOptionsTest, PutsAGpuIntoAnUnnamedNodeAndMultipliesIt) {
  const auto machine_options = find({"a100-80"}, {1, 8, 16});
  ASSERT_EQ(machine_options.size(), 3U);
  EXPECT_EQ(machine_options[0].gpu->id, "a100-80");
  EXPECT_FALSE(machine_options[0].named);
  EXPECT_EQ(machine_options[1].nodes(), 1);
  EXPECT_EQ(machine_options[2].nodes(), 2);
}

TEST(MachineOptionsTest, TakesOneGpuAndAWholeNodeOfAMachine) {
  const auto machine_options = find({"minotauro"});
  ASSERT_EQ(machine_options.size(), 2U);
  EXPECT_EQ(machine_options[0].gpus, 1);
  EXPECT_EQ(machine_options[1].gpus, 4);
  EXPECT_EQ(machine_options[1].per_node, 4);
  EXPECT_EQ(machine_options[1].machine.scheduler.walltime, 48 * 3600);
  EXPECT_EQ(machine_options[1].cpu->id, "xeon-e5-2630-v3");
}

TEST(MachineOptionsTest, MakesAMachineOptionForEachGpuThatTheSourceLeavesOpen) {
  const auto machine_options = find({"delta"}, {4});
  ASSERT_EQ(machine_options.size(), 3U);
  EXPECT_EQ(machine_options[0].gpu->id, "v100-16");
  EXPECT_EQ(machine_options[2].gpu->id, "k80");
}

TEST(MachineOptionsTest, KnowsEveryGpuProcessorsAndThisMachine) {
  const auto catalogue = catalogue::load_embedded();
  EXPECT_EQ(find({"all"}).size(), catalogue.gpus.size());
  EXPECT_EQ(find({"all", "h200"}).size(), catalogue.gpus.size());  // each once
  const auto here = find({"cpu"});
  ASSERT_EQ(here.size(), 1U);
  EXPECT_EQ(here[0].gpus, 0);
  EXPECT_EQ(here[0].ranks(), 1);
  EXPECT_EQ(find({"archer2"})[0].cpu->id, "epyc-7742");
  EXPECT_EQ(find({"epyc-7742"})[0].machine.cores_per_node, 64);
}

TEST(MachineOptionsTest, AssumesWhatTheProbeCannotTellOfAnUnknownProcessorAndSaysSo) {
  const auto catalogue = catalogue::load_embedded();
  site::Probe probe;
  probe.processor = {.model = "Virtual CPU", .sockets = 1, .cores = 4, .usable = 2, .vector_units = {"avx2"}};
  const auto machine_options = find_machine_options(
      {.on = {"here"}, .gpus = {}, .here = [&] { return describe_here(probe, catalogue, "2026-11-15"); }}, catalogue);
  ASSERT_EQ(machine_options.size(), 1U);
  EXPECT_EQ(machine_options[0].cpu->cores, 2);
  ASSERT_EQ(machine_options[0].notes.size(), 1U);
  EXPECT_THAT(machine_options[0].notes[0], HasSubstr("the catalogue has no processor 'Virtual CPU': 2.6 GHz"));
}

TEST(MachineOptionsTest, ReadsAMachineDocument) {
  base::TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.json").string();
  base::write_file(file, R"({"name": "mine", "nodes": 2, "gpu": "a6000", "gpus_per_node": 2})");
  const auto machine_options = find({file}, {4});
  ASSERT_EQ(machine_options.size(), 1U);
  EXPECT_TRUE(machine_options[0].own);
  EXPECT_EQ(machine_options[0].nodes(), 2);
  EXPECT_THAT(complaint({file}, {8}), HasSubstr("gives a job 4 at most, 2 nodes of 2"));
}

TEST(MachineOptionsTest, SpreadsGpusThatDoNotFillTheirNodesEvenlyOverMoreOfThem) {
  const auto ten = find({"minotauro"}, {10});  // BSC's own row: 5 nodes, 10 GPUs
  ASSERT_EQ(ten.size(), 1U);
  EXPECT_EQ(ten[0].nodes(), 5);
  EXPECT_EQ(ten[0].per_node, 2);
  EXPECT_THAT(ten[0].notes, testing::Contains("10 GPUs as 5 nodes with 2 each, of 4"));
  EXPECT_EQ(find({"minotauro"}, {6})[0].nodes(), 2);
  EXPECT_EQ(find({"a100-80"}, {12})[0].per_node, 6);
  EXPECT_THAT(
      complaint({"minotauro"}, {41}),
      HasSubstr("--gpus 41: 41 nodes with 1 each would take as many; minotauro gives a job 39\n  fix: --gpus 40 "
                "or 44"));
}

TEST(MachineOptionsTest, TakesFewerGpusOfANodeWhereTheUserSaysSo) {
  const auto catalogue = catalogue::load_embedded();
  MachineRequest request{.on = {"minotauro"}, .gpus = {10}, .per_node = 2, .per_node_asked = true, .here = {}};
  const auto machine_options = find_machine_options(request, catalogue);
  ASSERT_EQ(machine_options.size(), 1U);
  EXPECT_EQ(machine_options[0].nodes(), 5);
  EXPECT_THAT(machine_options[0].notes, testing::IsEmpty());
  request.per_node = 8;
  EXPECT_THROW(find_machine_options(request, catalogue), base::Error);
  request.per_node = 1;
  request.gpus = {40};
  EXPECT_THROW(find_machine_options(request, catalogue), base::Error) << "it has 39 nodes";
  request.gpus = {39};
  EXPECT_EQ(find_machine_options(request, catalogue)[0].nodes(), 39);
}

TEST(MachineOptionsTest, TakesASavedMachineWithAProcessorThatTheCatalogueLacks) {
  base::TemporaryFolder folder;
  const std::string file = (folder.path() / "saved.json").string();
  base::write_file(file, R"({"name": "saved", "cpu": "Virtual CPU", "sockets_per_node": 1, "cores_per_node": 2})");
  const auto machine_options = find({file});
  ASSERT_EQ(machine_options.size(), 1U);
  EXPECT_EQ(machine_options[0].cpu->cores, 2);
  EXPECT_THAT(machine_options[0].notes, testing::Contains(HasSubstr("the catalogue has no processor 'Virtual CPU'")));
  base::write_file(file, R"({"name": "saved", "cpu": "Virtual CPU"})");
  EXPECT_THAT(complaint({file}), HasSubstr("say cores_per_node in the document"));
}

TEST(MachineOptionsTest, NamesTheNearestOfAnUnknownGpu) {
  EXPECT_THAT(complaint({"a100_80"}), HasSubstr("did you mean 'a100-80'"));
}

TEST(MachineOptionsTest, TakesAGpuByItsMemoryAlone) {
  for (const char* word : {"8GB", "8 GiB"}) {
    const auto machine_options = find({word});
    ASSERT_EQ(machine_options.size(), 1U) << word;
    EXPECT_TRUE(machine_options[0].only_memory);
    EXPECT_EQ(machine_options[0].gpu->id, word);
    EXPECT_DOUBLE_EQ(machine_options[0].gpu->memory_gb.value(), 8);
    EXPECT_FALSE(machine_options[0].gpu->driver_memory_mib);
    EXPECT_THAT(machine_options[0].notes, testing::ElementsAre("any GPU of that memory, taken as one like rtx3080"));
  }
  EXPECT_THAT(complaint({"rtx2070"}), HasSubstr("--on 8GB"));
  EXPECT_THAT(complaint({"lotsGB"}), HasSubstr("the catalogue has no GPU or machine 'lotsGB'"));
}

TEST(MachineOptionsTest, RefusesAMachineThatNoDocumentDescribes) {
  EXPECT_THAT(complaint({"hilda"}), HasSubstr("hilda states neither its GPUs nor its processors"));
}

}  // namespace
}  // namespace lockstep::planning
