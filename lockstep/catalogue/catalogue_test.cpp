// SPDX-License-Identifier: Apache-2.0
#include "lockstep/catalogue/catalogue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "lockstep/base/error.h"

namespace lockstep::catalogue {
namespace {

template <class Act>
std::string refusal_of(Act act) {
  try {
    act();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return std::string(error.what()) + " | " + error.fix();
  }
  return "";
}

class UserFolder {
 public:
  UserFolder() { ::setenv("LOCKSTEP_CATALOGUE", folder_.path().c_str(), 1); }
  ~UserFolder() { ::unsetenv("LOCKSTEP_CATALOGUE"); }
  std::string write(const std::string& name, const std::string& content) {
    base::write_file(folder_.path() / name, content);
    return (folder_.path() / name).string();
  }

 private:
  base::TemporaryFolder folder_;
};

TEST(CatalogueTest, ShipsTheGpusAndMachinesOfTheMission) {
  const Catalogue all = load_embedded();
  for (const char* id :
       {"k40",     "k80",     "p100", "v100-16", "v100-32", "t4",   "rtx2080ti", "rtx3080", "rtx3090", "a6000",
        "a100-40", "a100-80", "l40s", "h100",    "h200",    "b200", "mi100",     "mi210",   "mi250x",  "mi300x"}) {
    EXPECT_EQ(all.gpu(id).id, id);
    EXPECT_GT(all.gpu(id).memory_gb.value_or(0), 0) << id;
    EXPECT_GT(all.gpu(id).bandwidth_gbs.value_or(0), 0) << id;
  }
  for (const char* id : {"crescent", "delta", "hilda", "minotauro", "piz-daint", "cray-xc50", "cray-cs-storm", "colab",
                         "deepsim", "archer2", "lumi", "leonardo", "marenostrum5", "juwels", "perlmutter"}) {
    EXPECT_EQ(all.machine(id).id, id);
  }
  EXPECT_NO_THROW(all.check_references());
}

// What a plan without rates says is tested in tests/scenarios/plan.txt; no source states those of the H100 with 64 GB.
TEST(CatalogueTest, StatesTheRatesOfEveryGpuButOne) {
  const Catalogue all = load_embedded();
  for (const auto& gpu : all.gpus) {
    if (gpu.id == "h100-64") continue;
    EXPECT_GT(gpu.bandwidth_gbs.value_or(0), 0) << gpu.id;
    EXPECT_GT(gpu.tflops_fp32.value_or(0), 0) << gpu.id;
  }
  for (const char* id : {"rtx6000ada", "a100-64",     "a100-40-pcie", "a10",     "rtx4060", "rtx4070",     "rtx4080",
                         "rtx4090",    "rtx5070",     "rtx5080",      "rtx5090", "rtx3060", "rtx3070",     "gtx1070",
                         "gtx1080",    "gtx1060-3gb", "mi250x",       "mi300x",  "gh200",   "rtx3080-12gb"})
    EXPECT_EQ(all.gpu(id).id, id);
}

TEST(CatalogueTest, CountsAK80AsOneDieAndAMinotauroNodeAsFour) {
  const Catalogue all = load_embedded();
  EXPECT_EQ(all.gpu("k80").memory_gb, 12);
  EXPECT_EQ(all.gpu("k80").dies_per_board, 2);
  EXPECT_EQ(all.machine("minotauro").gpus_per_node, 4);
}

TEST(CatalogueTest, KnowsWhatCurrentCudaNoLongerDrives) {
  const Catalogue all = load_embedded();
  EXPECT_EQ(all.gpu("k40").last_cuda, "11.8");
  EXPECT_EQ(all.gpu("v100-32").last_cuda, "12.9");
  EXPECT_FALSE(all.gpu("t4").planning_only());
  EXPECT_TRUE(all.gpu("mi250x").planning_only());
}

TEST(CatalogueTest, LeavesHildaUnstated) {
  const Catalogue all = load_embedded();
  const MachineRow& hilda = all.machine("hilda");
  EXPECT_TRUE(hilda.gpus.empty());
  EXPECT_EQ(hilda.gpus_per_node, std::nullopt);
  EXPECT_EQ(to_machine(hilda).nodes, 0);
}

TEST(CatalogueTest, SumsTheDeepSimPartsToTheirPrice) {
  const Catalogue all = load_embedded();
  double sum = 0;
  for (const auto& part : all.parts) {
    const bool wanted = part.id == "rtx3090" || part.id == "threadripper-3970x" || part.price_gbp == 600 ||
                        part.kind == "ssd" || part.kind == "hdd" || part.kind == "case" || part.kind == "psu" ||
                        part.kind == "motherboard";
    if (wanted) sum += *part.price_gbp * (part.id == "rtx3090" ? 2 : 1);
  }
  EXPECT_EQ(sum, 7485);
}

TEST(CatalogueTest, NamesTheNearestIds) {
  const Catalogue all = load_embedded();
  const std::string answer = refusal_of([&] { (void)all.gpu("a100-81"); });
  EXPECT_EQ(answer.substr(0, 57), "unknown GPU 'a100-81' | did you mean 'a100-80', 'a100-40'") << answer;
  EXPECT_EQ(refusal_of([&] { (void)all.machine("lumii"); }), "unknown machine 'lumii' | did you mean 'lumi'?");
}

TEST(CatalogueTest, FindsRowsByTheNamesThatDriversAndKernelsUse) {
  const Catalogue all = load_embedded();
  ASSERT_NE(all.gpu_by_driver_name("NVIDIA H200"), nullptr);
  EXPECT_EQ(all.gpu_by_driver_name("NVIDIA H200")->id, "h200");
  EXPECT_EQ(all.gpu_by_driver_name("Voodoo 2"), nullptr);
  ASSERT_NE(all.cpu_by_model_name("Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz"), nullptr);
  EXPECT_EQ(all.cpu_by_model_name("Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz")->id, "xeon-e5-2630-v3");
  EXPECT_EQ(all.cpu_by_model_name("AMD EPYC 7742 64-Core Processor")->id, "epyc-7742");
  EXPECT_EQ(all.cpu_by_model_name("AMD EPYC 77421"), nullptr);
}

// Which of ours is found depends on no order: none fits what another one is called.
TEST(CatalogueTest, FindsEachRowByItsOwnNames) {
  const Catalogue all = load_embedded();
  for (const auto& cpu : all.cpus) EXPECT_EQ(all.cpu_by_model_name(cpu.name)->id, cpu.id);
  for (const auto& gpu : all.gpus) {
    for (const auto& name : gpu.driver_names) EXPECT_EQ(all.gpu_by_driver_name(name)->id, gpu.id) << name;
  }
  Catalogue turned = all;
  std::reverse(turned.cpus.begin(), turned.cpus.end());
  for (const auto& cpu : all.cpus) EXPECT_EQ(turned.cpu_by_model_name(cpu.name)->id, cpu.id);
}

// Of a processor or GPU that the catalogue knows too, the user's row counts: it is of that very machine.
TEST(CatalogueTest, AUsersOwnRowGoesBeforeOurs) {
  UserFolder user;
  user.write("mine.json", R"({"cpus": [{"id": "this-one", "name": "AMD EPYC 7742 64-Core Processor", "vendor": "AMD",
      "source": "our lab", "date": "2026-11"}], "gpus": [{"id": "our-h200", "name": "Our H200", "vendor": "NVIDIA",
      "driver_names": ["NVIDIA H200"], "source": "our lab", "date": "2026-11"}]})");
  const Catalogue all = load_catalogue();
  EXPECT_EQ(all.cpu_by_model_name("AMD EPYC 7742 64-Core Processor")->id, "this-one");
  EXPECT_EQ(all.gpu_by_driver_name("NVIDIA H200")->id, "our-h200");
  EXPECT_EQ(all.cpu_by_model_name("AMD EPYC 7763 64-Core Processor")->id, "epyc-7763");
  EXPECT_EQ(all.gpu_by_driver_name("NVIDIA H200 NVL")->id, "h200-nvl");
}

TEST(CatalogueTest, TakesUserRowsWithoutARebuild) {
  UserFolder user;
  user.write("mine.json", R"({"gpus": [{"id": "x1", "name": "X1", "vendor": "NVIDIA", "memory_gb": 3,
      "source": "a sheet", "date": "2026-11"}, {"id": "t4", "name": "Our T4", "vendor": "NVIDIA",
      "source": "our lab", "date": "2026-11"}]})");
  const size_t shipped = load_embedded().gpus.size();
  const Catalogue all = load_catalogue();
  EXPECT_EQ(all.gpus.size(), shipped + 1);
  EXPECT_EQ(all.gpu("x1").memory_gb, 3);
  EXPECT_EQ(all.gpu("t4").name, "Our T4");
}

TEST(CatalogueTest, RefusesBadUserFilesWithTheirPlace) {
  UserFolder user;
  const std::string row = R"({"id": "x1", "name": "X1", "vendor": "V", "source": "s", "date": "2026"})";
  const std::string twice = user.write("a.json", "{\"gpus\": [" + row + ",\n" + row + "]}");
  EXPECT_EQ(
      refusal_of([] { load_catalogue(); }),
      twice + ":2:1: the id 'x1' stands twice in this file | keep one of them; the other is at " + twice + ":1:11");
  const std::string kind = user.write("a.json", "{\"gpu\": []}");
  EXPECT_EQ(refusal_of([] { load_catalogue(); }).substr(0, kind.size() + 33),
            kind + ":1:2: unknown kind of row 'gpu' |");
  user.write("a.json",
             R"({"machines": [{"id": "m", "name": "M", "gpus": ["a100-81"], "source": "s", "date": "2026"}]})");
  EXPECT_NE(refusal_of([] { load_catalogue(); }).find("machine 'm': unknown GPU 'a100-81'"), std::string::npos);
}

TEST(CatalogueTest, ChecksTheGpuOfAMachineDocument) {
  const Catalogue all = load_embedded();
  spec::Machine machine;
  machine.gpu = "v100_32";
  machine.gpus_per_node = 4;
  const auto document = base::parse_json("{\n  \"gpu\": \"v100_32\"}", "machine.json");
  const std::string answer = refusal_of([&] { check_machine(machine, all, document); });
  EXPECT_EQ(answer.substr(0, 41), "machine.json:2:10: unknown GPU 'v100_32' ");
  EXPECT_NE(answer.find("'v100-32'"), std::string::npos);
  machine.gpu = "";
  EXPECT_NO_THROW(check_machine(machine, all));  // a machine without GPUs
  machine.gpu = "v100-32";
  EXPECT_NO_THROW(check_machine(machine, all));
}

TEST(CatalogueTest, TurnsARowIntoAMachineDocument) {
  const spec::Machine juwels = to_machine(load_embedded().machine("juwels"));
  EXPECT_EQ(juwels.nodes, 936);
  EXPECT_EQ(juwels.gpu, "a100-40");
  EXPECT_EQ(juwels.memory_per_node, 512'000'000'000);
  EXPECT_EQ(juwels.links.inter.rate, 100e9);
  EXPECT_EQ(juwels.scheduler.kind, spec::SchedulerKind::slurm);
  EXPECT_EQ(juwels.scheduler.walltime, 0);  // not stated
  EXPECT_EQ(to_machine(load_embedded().machine("lumi")).scheduler.walltime, 48 * 3600);
}

}  // namespace
}  // namespace lockstep::catalogue
