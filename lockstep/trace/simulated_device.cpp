// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/simulated_device.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty.h>

#include "lockstep/base/error.h"
#include "lockstep/trace/attention.h"
#include "lockstep/trace/convolution.h"
#include "lockstep/trace/inside.h"
#include "lockstep/trace/kernels.h"
#include "lockstep/trace/unknown_operator.h"

namespace lockstep::trace {
namespace {

// The kernels are registered for the whole process, so what they report to is the process's, too.
std::shared_ptr<Recorder>& active() {
  static std::shared_ptr<Recorder> recorder;
  return recorder;
}

// What a storage of the GPU is made of: no bytes, only who to tell of its end.
struct Cell {
  std::shared_ptr<Recorder> recorder;
  int64_t id;
  double value;
};

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    auto recorder = active();
    const int64_t id = recorder ? recorder->birth(static_cast<int64_t>(bytes)) : -1;
    return {nullptr, new Cell{std::move(recorder), id, 1}, &release, SimulatedDevice::device()};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void*, const void*, std::size_t) const override {}

 private:
  static void release(void* context) {
    const std::unique_ptr<Cell> cell(static_cast<Cell*>(context));
    if (cell->recorder) cell->recorder->death(cell->id);
  }
};

Allocator& allocator() {
  static auto* const one = new Allocator;  // storages may outlive every static
  return *one;
}

Cell* cell_of(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda() || !tensor.has_storage()) return nullptr;
  return static_cast<Cell*>(tensor.storage().data_ptr().get_context());
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                   type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &allocator(), c10::DispatchKeySet(c10::DispatchKey::CUDA),
                                           type.value_or(at::kFloat));
}

void install() {
  inside::plug_in({&allocator(), &convolution_backward, &transposed_backward, &depthwise_backward, &choose_attention});
  static auto* const aten =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  aten->impl("empty.memory_format", &empty);
  aten->impl("empty_strided", &empty_strided);
  aten->impl("view", &inside::view);
  aten->impl("_reshape_alias", &inside::reshape_alias);
  aten->impl("as_strided", &inside::as_strided);
  register_table(*aten);
  register_convolution(*aten);
  register_norms(*aten);
  register_attention(*aten);
  register_kernels(*aten);
  static auto* const own =
      new torch::Library(torch::Library::IMPL, "lockstep", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  register_regions(*own);
  register_layers(*own);
  register_updates(*own);
  static auto* const rest = new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  rest->fallback(torch::CppFunction::makeFromBoxedFunction<&run_unknown_operator>());
}

}  // namespace

SimulatedDevice::SimulatedDevice(std::shared_ptr<Recorder> recorder) {
  static const bool installed = (install(), true);
  base::ensure(installed && !active(), "one simulated GPU at a time");
  active() = std::move(recorder);
}

SimulatedDevice::~SimulatedDevice() {
  active().reset();
}

Recorder& recorder() {
  base::ensure(active() != nullptr, "a simulated GPU is there");
  return *active();
}

int64_t storage_id(const at::Tensor& tensor) {
  const Cell* cell = cell_of(tensor);
  return cell ? cell->id : -1;
}

double value_of(const at::Tensor& tensor) {
  const Cell* cell = cell_of(tensor);
  return cell ? cell->value : 1;
}

void set_value(const at::Tensor& tensor, double value) {
  if (Cell* cell = cell_of(tensor)) cell->value = value;
}

void give_size(const at::Tensor& tensor, at::IntArrayRef sizes) {
  if (tensor.sizes() != sizes) give_layout(tensor, make(sizes, tensor.scalar_type()));
}

void give_layout(const at::Tensor& tensor, const at::Tensor& made) {
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(made.storage());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(made.sizes(), made.strides());
}

at::Tensor make(at::IntArrayRef sizes, at::ScalarType type, at::MemoryFormat format) {
  return empty(sizes, type, {}, {}, {}, format);
}

at::Tensor make_bytes(int64_t bytes) {
  return make({bytes}, at::kByte);
}

}  // namespace lockstep::trace
