// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::step {

class WeightCopies;  // weight_copies.h

// Which of a block's parameters a pass in 16 bit takes as casts: all but those of norms.
std::vector<bool> cast_parameters(const model::Block& block);

// The type of a pass's input under `precision`; with amp, autocast finds the type of each operator by itself.
at::ScalarType compute_type(spec::Precision precision);

// For its lifetime the network's matrices and convolutions are casts in `compute_type`; norms keep their fp32 weights
// and statistics. The casts carry gradients back to the fp32 master weights, which are all that is stored. What has a
// lasting copy among `copies` is that copy. Without a 16-bit compute_type and copies: nothing. REQUIRES: one scope at a
// time per network; backward may run after the scope.
class WeightCasts {
 public:
  WeightCasts(const model::Network& network, spec::Precision precision)
      : WeightCasts(network, precision, network.blocks().size()) {}
  // Of blocks [0, end).
  WeightCasts(const model::Network& network, spec::Precision precision, size_t end,
              const WeightCopies* copies = nullptr);
  WeightCasts(model::Block& block, spec::Precision precision) { cast(block, precision); }
  ~WeightCasts();
  WeightCasts(const WeightCasts&) = delete;
  WeightCasts& operator=(const WeightCasts&) = delete;

 private:
  struct Kept {
    at::Tensor* position;
    at::Tensor master;
  };
  void cast(model::Block& block, spec::Precision precision, const WeightCopies* copies = nullptr);
  std::vector<Kept> kept_;
};

// For its lifetime operators of this thread run under libtorch's autocast: fp16 on CUDA, bf16 on the CPU. Casts of
// weights are not cached (each weight is used once a pass): a cast cached by a pass without gradients would come
// without its way back to the weight.
class Autocast {
 public:
  explicit Autocast(at::Device device);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_before_;
  bool cached_before_;
  at::ScalarType type_before_;
};

// For its lifetime a pass over the network computes as `precision` says; with weights of blocks [0, end) that the
// network has, whoever gives it those of others casts them. Whether fp32 products may use tensor cores is
// a setting of the whole process, made here, that stays: backward, after the scope, shall follow it too.
class PassPrecision {
 public:
  PassPrecision(const model::Network& network, spec::Precision precision, at::Device device)
      : PassPrecision(network, precision, device, network.blocks().size()) {}
  PassPrecision(const model::Network& network, spec::Precision precision, at::Device device, size_t end,
                const WeightCopies* copies = nullptr);

 private:
  WeightCasts casts_;
  std::optional<Autocast> autocast_;
};

}  // namespace lockstep::step
