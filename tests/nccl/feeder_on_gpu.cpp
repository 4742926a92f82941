// SPDX-License-Identifier: Apache-2.0
// What Feeder must hold to on a GPU: its copies go on a stream of their own.
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lockstep/loader/loader.h"
#include "lockstep/step/feeder.h"

namespace lockstep::step {
namespace {

// The allocator gives freed memory out again at once, while kernels that were queued with it have yet to run: these
// must not write over the images that come into the same memory by another stream.
TEST(FeederOnGpuTest, WaitsForKernelsThatStillUseTheMemoryItIsGiven) {
  const loader::Collection collection = loader::synthetic_collection(256, 3);
  loader::LoaderOptions options;
  options.data.image_size = 224;
  options.data.pixels = spec::Pixels::bf16;
  options.global_batch = 64;
  const at::Device gpu(at::kCUDA, 0);
  const auto plain = loader::make_loader(collection, options, {1, 0, 0});
  const Samples expected = to_samples(plain->next(), gpu);
  for (int round = 0; round < 10; ++round) {
    const auto loader = loader::make_loader(collection, options, {1, 0, 0});
    at::Tensor large = at::empty({int64_t{1} << 30}, at::TensorOptions(at::kByte).device(gpu));
    at::Tensor freed = at::empty({64, 224, 224, 3}, at::TensorOptions(at::kBFloat16).device(gpu));
    for (int i = 0; i < 2000; ++i) large.fill_(i % 7);  // about a second of work, queued in no time
    for (int i = 0; i < 10; ++i) freed.fill_(1000);
    freed.reset();
    Feeder feeder(*loader, gpu);
    const Samples samples = feeder.next();
    EXPECT_TRUE(at::equal(samples.fields.at("image"), expected.fields.at("image"))) << round;
  }
}

}  // namespace
}  // namespace lockstep::step
