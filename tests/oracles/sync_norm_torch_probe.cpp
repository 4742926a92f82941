// SPDX-License-Identifier: Apache-2.0
// sync_norm_torch_probe [cpu|cuda]: holds step::sync_batch_norm on a device against libtorch's batch norm of the whole
// batch there. One rank runs on the device; what the other one sends was written down in a run of both on the CPU, so
// one GPU is enough (autograd has one thread a GPU: two ranks in one process would wait for each other). Prints one
// line a case with the worst difference; exit code 1 when one is above its bound.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/step/device.h"
#include "lockstep/step/sync_batch_norm.h"

namespace {

using namespace lockstep;

// Two ranks: passes a real group's collectives on and keeps what this rank sent, or answers from what the other one
// did.
class Taped final : public comm::Group {
 public:
  explicit Taped(comm::Group& real) : real_(&real), rank_(real.rank()) {}
  Taped(int64_t rank, std::vector<at::Tensor> theirs) : rank_(rank), tape_(std::move(theirs)) {}

  int64_t rank() const override { return rank_; }
  int64_t size() const override { return 2; }
  void all_reduce_sum(at::Tensor& tensor) override {
    if (real_) {
      tape_.push_back(tensor.clone());
      real_->all_reduce_sum(tensor);
    } else {
      tensor.add_(tape_.at(next_++).to(tensor.options()));
    }
  }
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    if (real_) {
      tape_.push_back(tensor.clone());
      return real_->all_gather(tensor);
    }
    const at::Tensor other = tape_.at(next_++).to(tensor.options());
    return rank_ == 0 ? std::vector<at::Tensor>{tensor, other} : std::vector<at::Tensor>{other, tensor};
  }
  const std::vector<at::Tensor>& tape() const { return tape_; }

  c10::intrusive_ptr<c10d::ProcessGroup> group() override { return refuse<c10::intrusive_ptr<c10d::ProcessGroup>>(); }
  void broadcast(at::Tensor&, int64_t) override { refuse<int>(); }
  void all_gather_into(const at::Tensor&, at::Tensor&) override { refuse<int>(); }
  void reduce_scatter_sum(const at::Tensor&, at::Tensor&) override { refuse<int>(); }
  void all_to_all(const at::Tensor&, at::Tensor&) override { refuse<int>(); }
  void send(const at::Tensor&, int64_t, int) override { refuse<int>(); }
  void receive(at::Tensor&, int64_t, int) override { refuse<int>(); }
  void barrier() override { refuse<int>(); }
  [[noreturn]] void abort(int code) override { std::_Exit(code); }
  double seconds_waited() const override { return 0; }

 private:
  template <class Result>
  static Result refuse() {
    throw base::Error(base::Blame::bug, "sync_batch_norm needs all_gather and all_reduce_sum only");
  }
  comm::Group* real_ = nullptr;
  int64_t rank_;
  std::vector<at::Tensor> tape_;
  size_t next_ = 0;
};

constexpr int64_t kChannels = 24;

at::Tensor ripple(at::IntArrayRef shape, double phase) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return (at::arange(count, at::kDouble) * 0.713 + phase).sin().view(shape);
}

struct Result {
  at::Tensor output, of_input, of_weight, of_bias, mean, variance;
};

template <class Norm>
Result differentiate(const at::Tensor& rows, const at::Tensor& along, at::ScalarType exact, const Norm& norm) {
  const at::Tensor input = rows.detach().clone(at::MemoryFormat::Preserve).requires_grad_(true);
  const auto options = rows.options().dtype(exact);
  at::Tensor weight = (ripple({kChannels}, 0.3) + 1.5).to(options).requires_grad_(true);
  at::Tensor bias = ripple({kChannels}, 0.9).to(options).requires_grad_(true);
  at::Tensor mean = at::zeros({kChannels}, options);
  at::Tensor variance = at::ones({kChannels}, options);
  const at::Tensor output = norm({input, weight, bias, mean, variance, 0.1, 1e-5});
  (output.to(exact) * along.to(options)).sum().backward();
  return {output.detach(), input.grad(), weight.grad(), bias.grad(), mean, variance};
}

double off(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  const at::Tensor x = a.to(at::kCPU, at::kDouble), y = b.to(at::kCPU, at::kDouble);
  return ((x - y).abs().max() / (1 + y.abs().max())).item<double>();
}

// `mine` of `rows` images are on the device's rank.
bool check(at::Device device, at::ScalarType type, at::MemoryFormat format, int64_t rows, int64_t mine, double bound) {
  const at::ScalarType exact = type == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor all = (ripple({rows, kChannels, 5, 7}, 0.1) + 3).to(type).contiguous(format);
  const at::Tensor along = ripple({rows, kChannels, 5, 7}, 0.5);
  std::vector<std::vector<at::Tensor>> tapes(2);
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    Taped taped(group);
    const int64_t start = group.rank() == 0 ? 0 : mine, count = group.rank() == 0 ? mine : rows - mine;
    differentiate(all.narrow(0, start, count), along.narrow(0, start, count), exact,
                  [&](const model::BatchNormCall& call) { return step::sync_batch_norm(call, taped); });
    tapes[static_cast<size_t>(group.rank())] = taped.tape();
  });
  Taped replayed(0, tapes[1]);
  const Result ours =
      differentiate(all.narrow(0, 0, mine).to(device), along.narrow(0, 0, mine).to(device), exact,
                    [&](const model::BatchNormCall& call) { return step::sync_batch_norm(call, replayed); });
  const Result whole = differentiate(all.to(device), along.to(device), exact, [](const model::BatchNormCall& call) {
    return model::plain_batch_norm(call, /*training=*/true);
  });
  double worst = 0;
  for (const double one :
       {off(ours.output, whole.output.narrow(0, 0, mine)), off(ours.of_input, whole.of_input.narrow(0, 0, mine)),
        off(ours.mean, whole.mean), off(ours.variance, whole.variance)}) {
    worst = std::max(worst, one);
  }
  const bool good = worst <= bound;
  std::printf("%s %s %s %s, %ld of %ld rows: worst difference %.2g (bound %.0e)\n", good ? "ok  " : "FAIL",
              device.is_cuda() ? "cuda" : "cpu", c10::toString(type),
              format == at::MemoryFormat::ChannelsLast ? "channels_last" : "contiguous", static_cast<long>(mine),
              static_cast<long>(rows), worst, bound);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  const at::Device device = step::open_device(argc > 1 ? argv[1] : "cpu", 0);
  bool good = true;
  for (const auto format : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous}) {
    for (const int64_t mine : {8, 5, 0}) {
      good &= check(device, at::kDouble, format, 16, mine, 1e-9);
      good &= check(device, at::kFloat, format, 16, mine, 1e-5);
      good &= check(device, at::kBFloat16, format, 16, mine, 1e-2);
    }
  }
  return good ? 0 : 1;
}
