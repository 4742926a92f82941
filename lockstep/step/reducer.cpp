// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/reducer.h"

#include <algorithm>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "lockstep/base/clock.h"

namespace lockstep::step {
namespace {

// Large enough to hide MPI's latency, small enough that the first leaves long before backward ends (measured by the
// authors of DDP: 1 MiB first, 25 MiB then).
constexpr int64_t kFirstBucketBytes = 1 << 20;
constexpr int64_t kBucketBytes = 25 << 20;

}  // namespace

class Reducer::SumHook : public c10d::CommHookInterface {
 public:
  SumHook(c10::intrusive_ptr<c10d::ProcessGroup> group, std::shared_ptr<double> last_bucket,
          spec::ReducePrecision precision)
      : group_(std::move(group)), last_bucket_(std::move(last_bucket)), precision_(precision) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    *last_bucket_ = base::steady_seconds();
    at::Tensor& sum = bucket.getBufferRef();
    if (precision_ == spec::ReducePrecision::bf16) return through_bfloat16(sum);
    std::vector<at::Tensor> tensors{sum};
    return group_->allreduce(tensors)->getFuture();
  }
  at::Tensor parseHookResult(const c10::IValue& result) override {
    return c10d::detail::parseCppCommHookResult(result);
  }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> through_bfloat16(const at::Tensor& sum) {
    std::vector<at::Tensor> rounded{sum.to(at::kBFloat16)};
    const auto future = group_->allreduce(rounded)->getFuture();
    return future->then(
        [sum](c10::ivalue::Future& done) {
          sum.copy_(done.value().toTensorVector()[0]);
          return c10::IValue(std::vector<at::Tensor>{sum});
        },
        c10::ListType::create(c10::TensorType::get()));
  }

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::shared_ptr<double> last_bucket_;
  spec::ReducePrecision precision_;
};

// Ours never rebuilds its buckets (a resumed run must keep its bits). Unless told that it has done so already,
// libtorch's notes every parameter of every step for a rebuild that never comes: 1.3 GB in 500,000 steps of ResNet-50.
class Reducer::Engine : public c10d::Reducer {
 public:
  using c10d::Reducer::Reducer;
  void keep_buckets() { has_rebuilt_bucket_ = true; }
};

Reducer::Reducer(const std::vector<at::Tensor>& parameters, comm::Group& group, spec::ReducePrecision precision)
    : last_bucket_(std::make_shared<double>(0)) {
  if (group.size() == 1) return;
  const std::vector<bool> sparse(parameters.size(), false);
  auto buckets = std::get<0>(c10d::compute_bucket_assignment_by_size(
      parameters, {static_cast<size_t>(kFirstBucketBytes), static_cast<size_t>(kBucketBytes)}, sparse));
  std::reverse(buckets.begin(), buckets.end());  // backward ends with the first layers
  engine_ = std::make_unique<Engine>(
      parameters, std::move(buckets), group.group(), sparse, kBucketBytes, /*find_unused_parameters=*/false,
      /*gradient_as_bucket_view=*/true, std::unordered_map<size_t, std::string>{}, kFirstBucketBytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<int64_t>{});
  engine_->keep_buckets();
  engine_->register_comm_hook(std::make_unique<SumHook>(group.group(), last_bucket_, precision));
}

Reducer::~Reducer() = default;

void Reducer::prepare() {
  if (engine_) engine_->prepare_for_backward({});
}

double Reducer::exposed_seconds(double end) const {
  return engine_ ? std::max(0.0, end - *last_bucket_) : 0;
}

}  // namespace lockstep::step
