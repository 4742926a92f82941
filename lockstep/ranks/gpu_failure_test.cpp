// SPDX-License-Identifier: Apache-2.0
// Out of memory, a GPU without code and a busy one were seen; the rest are CUDA's words from its headers, never met.
#include "lockstep/ranks/gpu_failure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::ranks {
namespace {

using ::testing::HasSubstr;

TEST(GpuFailureTest, OutOfMemorySaysWhatWasAskedForAndWhatIsFree) {
  const auto error = gpu_failure(
      "CUDA out of memory. Tried to allocate 20.50 GiB. GPU 0 has a total capacity of 139.80 GiB of which 5.31 GiB is "
      "free. Including non-PyTorch memory, this process has 134.48 GiB memory in use.");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->exit_code(), 3);
  EXPECT_THAT(error->message(), HasSubstr("20.50 GiB more were asked for, 5.31 GiB of 139.80 GiB are free"));
  EXPECT_THAT(error->fix(), HasSubstr("training.micro_batch"));
}

TEST(GpuFailureTest, EachKnownFailureHasItsFix) {
  const std::pair<const char*, const char*> rows[] = {
      {"CUDA error: no kernel image is available for execution on the device", "compute capability"},
      {"CUDA error: CUDA driver version is insufficient for CUDA runtime version", "update the driver"},
      {"CUDA error: CUDA-capable device(s) is/are busy or unavailable", "nvidia-smi"},
      {"CUDA error: uncorrectable ECC error encountered", "another node"},
      {"CUDA error: unspecified launch failure", "last checkpoint"},
      {"CUDA error: an illegal memory access was encountered", "training.kernels=reference"},
      {"CUDA error: GPU is lost", "another node"},
      {"CUDA error: unknown error", "another node"}};
  for (const auto& [words, fix] : rows) {
    const auto error = gpu_failure(words);
    ASSERT_TRUE(error) << words;
    EXPECT_EQ(error->exit_code(), 3) << words;
    EXPECT_THAT(error->fix(), HasSubstr(fix)) << words;
    EXPECT_THAT(error->message(), HasSubstr(words));
  }
}

TEST(GpuFailureTest, OtherWordsAreNone) {
  EXPECT_FALSE(gpu_failure("unknown error of the disk"));
  EXPECT_FALSE(gpu_failure("shapes differ"));
}

}  // namespace
}  // namespace lockstep::ranks
