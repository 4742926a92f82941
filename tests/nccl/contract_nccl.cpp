// SPDX-License-Identifier: Apache-2.0
// The contract of every group, on a GPU through NCCL: `test_nccl` alone is one rank; several are started with
// LOCKSTEP_RENDEZVOUS, LOCKSTEP_RANK and LOCKSTEP_SIZE, a GPU each. Exit code 77: no GPU here.
#include <gtest/gtest.h>

#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/comm/group_contract.h"
#include "lockstep/comm/nccl_group.h"
#include "lockstep/site/launch.h"
#include "lockstep/step/device.h"

namespace lockstep::comm {
namespace {

Group* gpus = nullptr;

class NcclContractTest : public ::testing::TestWithParam<ContractCase> {};

TEST_P(NcclContractTest, HoldsOnTheGpu) {
  GetParam().run(*gpus, c10::DeviceType::CUDA);
}

TEST_P(NcclContractTest, HoldsForTensorsOfTheHost) {
  GetParam().run(*gpus, c10::DeviceType::CPU);
}

INSTANTIATE_TEST_SUITE_P(All, NcclContractTest, ::testing::ValuesIn(kGroupContract),
                         [](const auto& info) { return std::string(info.param.name); });

int run_contract() {
  const site::Launch launch = site::read_launch();
  const at::Device device = step::open_device("cuda", launch.local_rank);
  const base::TemporaryFolder folder;
  const auto group = launch.has_company ? join_cuda_group(device, folder.path())
                                        : nccl_group(device, {folder.path() / "meeting", 0, 1});
  gpus = group.get();
  std::printf("rank %lld of %lld on %s\n", static_cast<long long>(group->rank()), static_cast<long long>(group->size()),
              device.str().c_str());
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace lockstep::comm

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    return lockstep::comm::run_contract();
  } catch (const lockstep::base::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return error.message().find("no NVIDIA driver") != std::string::npos ? 77 : 1;
  }
}
