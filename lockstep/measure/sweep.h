// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "lockstep/forecast/recording.h"

namespace lockstep::measure {

// One thing to time that belongs to no network: a few operators of one class on tensors of their own.
struct SweepCase {
  std::string label;  // "convolution 3x3": of progress and errors
  forecast::NumberType type = forecast::NumberType::fp32;
  bool contiguous = false;  // images as [N, C, H, W] in memory; false: channels last, as the step has them
  double flops = 0;         // about, of one call: what a small machine leaves out
  double bytes = 0;         // about, of all its tensors
  // Makes the tensors and gives the work: each operator of the case, once. The tensors live as long as the work.
  std::function<std::function<void()>()> make;
};

// What the cases are made for.
struct SweepRange {
  at::Device device = at::kCPU;
  std::vector<forecast::NumberType> types;
  std::vector<int64_t> batches;
  double most_flops = 0;  // of one call
  double most_bytes = 0;

  static SweepRange of(at::Device device);  // small sizes for the processor
};

// Every class of operator that training has, over sizes, in an order shuffled by `seed`: wherever a time box ends the
// sweep, what was timed is spread over all of them.
std::vector<SweepCase> make_sweep(const SweepRange& range, uint64_t seed);

// The parts, each in its file.
void add_products(std::vector<SweepCase>& cases, const SweepRange& range);      // matrix products, attention
void add_convolutions(std::vector<SweepCase>& cases, const SweepRange& range);  // and their two gradients
void add_passes(std::vector<SweepCase>& cases, const SweepRange& range);   // what memory bounds: norms, elementwise
void add_updates(std::vector<SweepCase>& cases, const SweepRange& range);  // fused optimizers

at::TensorOptions options_of(const SweepRange& range, forecast::NumberType type);
// Random numbers made on the device: zeros would draw less power and run faster.
at::Tensor noise(at::IntArrayRef sizes, const at::TensorOptions& options);
at::Tensor image_noise(at::IntArrayRef sizes, const at::TensorOptions& options, bool contiguous);

}  // namespace lockstep::measure
