// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/kernels.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lockstep/trace/operator.h"
#include "lockstep/trace/simulated_device.h"

// Kernels whose outputs libtorch leaves to the GPU's library, and the ways between GPU and host.
namespace lockstep::trace {
namespace {

using forecast::OperatorClass;

// Within the GPU a kernel; to the host every byte is zero; from the host nothing is read.
at::Tensor& copy_(at::Tensor& self, const at::Tensor& source, bool /*non_blocking*/) {
  if (self.is_cuda()) {
    ran("aten::copy_", source.is_cuda() ? OperatorClass::copy : OperatorClass::host, {source}, {self});
  } else {
    ran("aten::copy_", OperatorClass::host, {source}, {});
    std::memset(self.storage().mutable_data(), 0, self.storage().nbytes());
  }
  return self;
}

at::Scalar local_scalar(const at::Tensor& self) {
  ran("aten::item", OperatorClass::host, {self}, {});
  const double value = value_of(self);
  if (self.scalar_type() == at::kBool) return value != 0;
  if (at::isIntegralType(self.scalar_type(), false)) return static_cast<int64_t>(value);
  return value;
}

at::Tensor where(const at::Tensor& condition, const at::Tensor& self, const at::Tensor& other) {
  const auto sizes = at::infer_size(at::infer_size(condition.sizes(), self.sizes()), other.sizes());
  at::Tensor result = make(sizes, self.scalar_type());
  ran("aten::where", OperatorClass::elementwise, {condition, self, other}, {result});
  return result;
}

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  std::vector<int64_t> sizes = self.sizes().vec();
  sizes[static_cast<size_t>(dim < 0 ? dim + self.dim() : dim)] = index.numel();
  at::Tensor result = make(sizes, self.scalar_type());
  ran("aten::index_select", OperatorClass::indexing, {result, index}, {result});  // reads what it writes, no more
  return result;
}

// What embedding gives its table (libtorch's EmbeddingBackwardKernel.cu): the indices are sorted, then ten rows or
// fewer of one index are added into a part, and its parts into its row. Always in the same order.
at::Tensor embedding_dense_backward(const at::Tensor& gradient, const at::Tensor& indices, int64_t rows,
                                    int64_t /*padding*/, bool /*scale_by_frequency*/) {
  constexpr int64_t kRowsPerPart = 10;
  const int64_t count = indices.numel(), width = gradient.size(-1);
  const at::Tensor sorted = make({count}, at::kLong), origin = make({count}, at::kLong);
  at::Tensor result = make({rows, width}, gradient.scalar_type());
  const int64_t segments = std::min(count, rows), parts = count / kRowsPerPart + segments;
  const at::Tensor begins = make({count + 2 * segments + parts}, at::kLong);
  const at::Tensor sums = make({parts, width}, at::kFloat);
  ran("aten::embedding_dense_backward", OperatorClass::indexing, {gradient, indices, sorted, origin, begins},
      {sorted, origin, begins, sums, result}, {.launches = 8});
  return result;
}

// Libtorch hands over an empty tensor and leaves its size to the GPU's library.
at::Tensor& arange(const at::Scalar& start, const at::Scalar& end, const at::Scalar& step, at::Tensor& out) {
  const double count = std::ceil((end.toDouble() - start.toDouble()) / step.toDouble());
  give_size(out, {static_cast<int64_t>(count)});
  ran("aten::arange", OperatorClass::copy, {}, {out});
  return out;
}

std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double /*rate*/,
                                                  std::optional<bool> /*train*/) {
  at::Tensor mask = at::empty_like(input, input.options().dtype(at::kBool));
  at::Tensor result = at::empty_like(input);
  ran("aten::native_dropout", OperatorClass::random, {input}, {result, mask});
  return {result, mask};
}

at::Tensor adaptive_avg_pool2d(const at::Tensor& input, at::IntArrayRef size) {
  at::Tensor result =
      make({input.size(0), input.size(1), size[0], size[1]}, input.scalar_type(), input.suggest_memory_format());
  ran("aten::_adaptive_avg_pool2d", OperatorClass::pooling, {input}, {result});
  return result;
}

at::Tensor adaptive_avg_pool2d_backward(const at::Tensor& gradient, const at::Tensor& input) {
  at::Tensor result = at::empty_like(input);
  ran("aten::_adaptive_avg_pool2d_backward", OperatorClass::pooling_gradient, {gradient}, {result});
  return result;
}

// One launch a chunk of tensors writes partial norms, one adds them up; each norm is a tensor of its own.
std::vector<at::Tensor> foreach_norm(at::TensorList tensors, const at::Scalar& /*order*/,
                                     std::optional<at::ScalarType> type) {
  constexpr int64_t kChunk = 65536;
  int64_t most_chunks = 1;
  for (const at::Tensor& tensor : tensors) most_chunks = std::max(most_chunks, (tensor.numel() + kChunk - 1) / kChunk);
  const auto count = static_cast<int64_t>(tensors.size());
  const at::ScalarType result_type = type.value_or(tensors.front().scalar_type());
  const at::Tensor partial = make({count * most_chunks}, at::kFloat);
  std::vector<at::Tensor> norms;
  for (int64_t i = 0; i < count; ++i) norms.push_back(make({}, result_type));
  ran("aten::_foreach_norm", OperatorClass::reduction, tensors, {partial}, {.launches = 2 + count / 110});
  return norms;
}

}  // namespace

void ran(const char* name, OperatorClass kind, at::TensorList read, at::TensorList written, Work work) {
  forecast::Operator call;
  call.name = name;
  call.kind = kind;
  call.flops = work.flops;
  call.launches = kind == OperatorClass::host ? 0 : work.launches;
  const at::Tensor* largest = nullptr;
  const auto count = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    call.bytes += tensor_bytes(tensor);
    if (!largest || tensor.numel() > largest->numel()) largest = &tensor;
  };
  for (const at::Tensor& tensor : read) count(tensor);
  for (const at::Tensor& tensor : written) count(tensor);
  call.type = work.flops > 0 || !largest ? work.type : plain_type(largest->scalar_type());
  call.shape = std::move(work.shape);
  if (call.shape.empty() && largest) call.shape = largest->sizes().vec();
  recorder().run(std::move(call));
}

void register_kernels(torch::Library& library) {
  library.impl("copy_", &copy_);
  library.impl("_local_scalar_dense", &local_scalar);
  library.impl("where.self", &where);
  library.impl("index_select", &index_select);
  library.impl("embedding_dense_backward", &embedding_dense_backward);
  library.impl("arange.start_out", &arange);
  library.impl("native_dropout", &native_dropout);
  library.impl("_adaptive_avg_pool2d", &adaptive_avg_pool2d);
  library.impl("_adaptive_avg_pool2d_backward", &adaptive_avg_pool2d_backward);
  library.impl("_foreach_norm.Scalar", &foreach_norm);
}

}  // namespace lockstep::trace
