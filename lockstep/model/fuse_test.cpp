// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/fuse.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/rand.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "lockstep/model/call_list.h"

namespace lockstep::model {
namespace {

// How many calls are left, having held their result against `compute` for other values.
template <class Compute>
size_t calls_left(const Compute& compute) {
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor first = at::rand({2, 4, 8, 8});
  at::Tensor output;
  const auto calls = varying_calls(record_calls([&] { output = compute(first); }), {first});
  PackedConvolutions packed;
  const auto fused = fuse_calls(*calls, {first}, {output}, packed);
  const at::Tensor image = at::rand({2, 4, 8, 8}) - 0.5;
  const at::Tensor found = CallList(fused, {first}, {output}).run({image.clone()}).front();
  EXPECT_LE((found - compute(image.clone())).abs().max().template item<double>(), 1e-5);
  return fused.size();
}

TEST(FuseTest, KeepsWhatIsReadBesides) {
  const at::Tensor weight = at::rand({4, 4, 3, 3}) - 0.5;
  const auto convolve = [&](const at::Tensor& image) { return at::conv2d(image, weight, {}, 1, 1); };
  EXPECT_EQ(calls_left([&](const at::Tensor& image) { return convolve(image).relu(); }), 1U);
  // The convolution's own output is read by another.
  EXPECT_EQ(calls_left([&](const at::Tensor& image) {
              const at::Tensor map = convolve(image);
              return map.relu().mul(map);
            }),
            3U);
  // What is added is read once more: no sum in its memory.
  EXPECT_EQ(calls_left([&](const at::Tensor& image) {
              const at::Tensor map = image.mul(2);
              return convolve(map).add(map).relu().add(map);
            }),
            3U);
  // What is added lies in the memory of the image, which is read once more.
  EXPECT_EQ(calls_left([&](const at::Tensor& image) {
              return convolve(image.mul(2)).add(image.view(image.sizes())).relu().add(image);
            }),
            4U);
  // What it reads is changed before the last of them: it stays as it is.
  EXPECT_EQ(calls_left([&](const at::Tensor& image) {
              at::Tensor map = image.mul(2);
              const at::Tensor seen = convolve(map);
              map.add_(1);
              return seen.relu();
            }),
            4U);
}

TEST(FuseTest, NumbersFromValuesCannotBeMadeASecondTime) {
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor image = at::rand({2});
  EXPECT_FALSE(varying_calls(record_calls([&] { image.mul(image.sum().item<double>()); }), {image}));
}

TEST(FuseTest, AnIndexThatVariesCannotBeMadeASecondTime) {
  const c10::AutoGradMode no_gradients(false);
  const at::Tensor image = at::rand({4});
  EXPECT_FALSE(varying_calls(record_calls([&] { image.index({image.argsort()}); }), {image}));
}

}  // namespace
}  // namespace lockstep::model
