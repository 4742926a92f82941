// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/doctor/doctor.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::verbs::doctor {
namespace {

// A machine on which nothing is wrong.
site::Probe healthy_probe() {
  site::Probe probe;
  probe.software.mpirun = "/usr/bin/mpirun";
  probe.software.mpi_version = "Open MPI 4.1.4";
  probe.software.mpi_plugin = "/lib/liblockstep_mpi.so";
  probe.software.torch_rooms = "/lib/liblockstep_torch.so";
  probe.software.host = "node1";
  probe.processor = {.model = "AMD EPYC 7742 64-Core Processor",
                     .sockets = 2,
                     .cores = 128,
                     .threads = 256,
                     .usable = 256,
                     .numa_nodes = 8,
                     .vector_units = {"avx2"}};
  probe.memory = {.total = uint64_t{256} << 30,
                  .available = uint64_t{200} << 30,
                  .group_limit = std::nullopt,
                  .shared = uint64_t{64} << 30,
                  .shared_free = uint64_t{64} << 30};
  probe.gpus.absent = "no NVIDIA driver";
  probe.threads = 256;
  return probe;
}

site::GpuDevice device(const char* name, int major, int minor) {
  return {.name = name,
          .memory_bytes = uint64_t{12} << 30,
          .used_bytes = 0,
          .capability_major = major,
          .capability_minor = minor,
          .power_limit_w = 0};
}

DoctorReport checked_report(const site::Probe& probe) {
  return examine(probe, catalogue::load_embedded());
}

// The mark and fix of the first finding that holds `words`.
std::string found(const DoctorReport& report, const std::string& words) {
  for (const auto& group : report.groups) {
    for (const auto& finding : group.findings) {
      if (finding.what.find(words) != std::string::npos) return std::string(name_of(finding.mark)) + ": " + finding.fix;
    }
  }
  return "nothing";
}

TEST(DoctorTest, HasNothingToFixOnAHealthyMachine) {
  const DoctorReport report = checked_report(healthy_probe());
  EXPECT_EQ(report.count(Mark::wrong), 0) << to_text(report);
  EXPECT_EQ(report.count(Mark::warn), 0) << to_text(report);
  EXPECT_EQ(found(report, "catalogue id epyc-7742"), "ok: ");
}

TEST(DoctorTest, SaysFirstThatNoCudaDrivesAKepler) {
  site::Probe probe = healthy_probe();
  probe.gpus.devices = {device("Tesla K80", 3, 7), device("Tesla K80", 3, 7)};
  probe.gpus.driver = "470.256.02";
  const DoctorReport report = checked_report(probe);
  EXPECT_EQ(report.verdict.front().substr(0, 73),
            "The Tesla K40/K80 here cannot be driven by any CUDA since 11.8: Lockstep ");
  EXPECT_EQ(found(report, "2 x Tesla K80").substr(0, 40), "wrong: lockstep train JOB --device cpu  ");
  EXPECT_NE(found(report, "driver 470.256.02"), "nothing");
}

TEST(DoctorTest, AsksForAnOlderLibtorchForPascalAndVolta) {
  site::Probe probe = healthy_probe();
  probe.gpus.devices = {device("Tesla V100-SXM2-32GB", 7, 0)};
  EXPECT_NE(found(checked_report(probe), "CUDA 13 no longer drives it").find("libtorch-cu126"), std::string::npos);
}

TEST(DoctorTest, TakesACurrentGpu) {
  site::Probe probe = healthy_probe();
  probe.gpus.devices = {device("NVIDIA H200", 9, 0)};
  probe.gpus.driver = "580.95.05";
  probe.gpus.cuda_major = 13;
  const DoctorReport report = checked_report(probe);
  EXPECT_EQ(report.count(Mark::wrong), 0) << to_text(report);
  EXPECT_EQ(found(report, "catalogue id h200"), "ok: ");
  EXPECT_EQ(report.verdict.front(), "Training runs on 1 GPU here (--device cuda).");
}

TEST(DoctorTest, NamesTheCommandForEachThingThatIsMissing) {
  site::Probe probe = healthy_probe();
  probe.software.mpirun = std::nullopt;
  probe.limits.open_files = {.soft = 1024, .hard = 65536};
  probe.memory.shared_free = 1 << 20;
  probe.storages = {{.role = "here",
                     .folder = "/w",
                     .type = "ext4",
                     .total_bytes = uint64_t{1} << 40,
                     .free_bytes = 1 << 20,
                     .free_inodes = 0,
                     .total_inodes = 0,
                     .writable = true,
                     .write_rate = std::nullopt,
                     .read_rate = std::nullopt}};
  const DoctorReport report = checked_report(probe);
  EXPECT_EQ(found(report, "open files 1024"), "warn: ulimit -n 65536");
  EXPECT_NE(found(report, "no MPI").find("apt-get install openmpi-bin"), std::string::npos);
  EXPECT_NE(found(report, "/dev/shm").find("remount"), std::string::npos);
  EXPECT_EQ(found(report, "nearly full").substr(0, 9), "wrong: du");
}

TEST(DoctorTest, SendsThemAwayFromALoginNode) {
  site::Probe probe = healthy_probe();
  probe.scheduler.name = site::SchedulerName::slurm;
  probe.scheduler.commands = true;
  probe.threads = 2;
  probe.niceness = 19;
  const DoctorReport report = checked_report(probe);
  EXPECT_EQ(report.verdict.front(), "This is a login node: plan and submit here, train on compute nodes.");
  EXPECT_NE(found(report, "2 threads at nice 19 here, probes no disk"), "nothing");
  EXPECT_NE(found(report, "look at a compute node: sbatch"), "nothing");
}

TEST(DoctorTest, SaysHowLongTheAllocationLasts) {
  site::Probe probe = healthy_probe();
  probe.scheduler = {.name = site::SchedulerName::slurm,
                     .commands = true,
                     .job_id = "42",
                     .partition = "main",
                     .node_list = "",
                     .nodes = 1,
                     .tasks = 2,
                     .restarts = 1,
                     .submit_dir = "",
                     .submit_path = ""};
  probe.seconds_left = std::chrono::seconds(5400);
  EXPECT_NE(found(checked_report(probe),
                  "inside an allocation: slurm job 42 in main, 1 node, 2 tasks, 1 h 30 min left, "
                  "restarted 1 time"),
            "nothing");
}

}  // namespace
}  // namespace lockstep::verbs::doctor
