// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/unknown_operator.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/sinh.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/trace/watched_device.h"

namespace lockstep::trace {
namespace {

TEST(UnknownOperatorTest, IsRunByItsMetaKernelAndNamed) {
  WatchedDevice watched;
  {
    const at::Tensor x = on_gpu({8, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
    const at::Tensor y = at::sinh(x);
    EXPECT_TRUE(y.is_cuda());
    EXPECT_EQ(y.sizes(), x.sizes());
    EXPECT_EQ(y.strides(), x.strides());
    EXPECT_NE(storage_id(y), storage_id(x));
  }
  const forecast::Recording recording = watched.finish();
  EXPECT_EQ(recording.estimated, std::vector<std::string>{"aten::sinh"});
  const forecast::Operator& call = recording.operators.back();
  EXPECT_EQ(call.name, "aten::sinh");
  EXPECT_EQ(call.bytes, 2 * 8 * 3 * 4 * 4 * 4);  // read and written
  EXPECT_EQ(call.launches, 1);
}

TEST(UnknownOperatorTest, InPlaceGivesTheTensorItself) {
  WatchedDevice watched;
  at::Tensor x = on_gpu({16});
  EXPECT_TRUE(x.erfinv_().is_same(x));
  EXPECT_EQ(watched.finish().estimated, std::vector<std::string>{"aten::erfinv"});
}

TEST(UnknownOperatorTest, AnOutputThatComesEmptyGetsItsSize) {
  const WatchedDevice watched;
  at::Tensor steps = at::empty({0}, on_gpu({1}).options());
  at::linspace_out(steps, 0, 1, 7);
  EXPECT_EQ(steps.numel(), 7);
}

TEST(UnknownOperatorTest, GradientsGoThroughIt) {
  WatchedDevice watched;
  const at::Tensor x = on_gpu({16}).requires_grad_();
  at::sinh(x).sum().backward();
  EXPECT_TRUE(x.grad().is_cuda());
}

TEST(UnknownOperatorTest, WithoutAMetaKernelIsABugWithItsName) {
  const WatchedDevice watched;
  const at::Tensor x = on_gpu({16});
  try {
    at::nonzero(x);
    FAIL() << "no error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::bug);
    EXPECT_NE(std::string(error.what()).find("aten::nonzero"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace lockstep::trace
