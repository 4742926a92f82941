// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/inside.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/native/ConvUtils.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "lockstep/base/error.h"

namespace lockstep::trace::inside {
namespace {

constexpr c10::DeviceIndex kGpu = 0;

// Asked by everything outside libtorch_cuda that behaves otherwise with a GPU: the generator's seed, the choice of
// cuDNN for convolutions and batch norms, autograd's threads.
class Hooks final : public at::CUDAHooksInterface {
 public:
  void init() const override {}
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    static const at::Generator generator = at::detail::createCPUGenerator();  // seeded by the step, never drawn from
    return generator;
  }
  at::Generator getNewGenerator(c10::DeviceIndex) const override { return at::detail::createCPUGenerator(); }
  c10::Device getDeviceFromPtr(void*) const override { return {c10::kCUDA, kGpu}; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool hasCUDA() const override { return true; }
  bool hasCUDART() const override { return true; }
  bool hasCuDNN() const override { return true; }
  bool hasCuBLASLt() const override { return true; }
  bool compiledWithCuDNN() const override { return true; }
  bool supportsDilatedConvolutionWithCuDNN() const override { return true; }
  bool supportsDepthwiseConvolutionWithCuDNN() const override { return true; }
  bool supportsBFloat16ConvolutionWithCuDNNv8() const override { return true; }
  long versionCuDNN() const override { return kCudnn; }
  long versionRuntimeCuDNN() const override { return kCudnn; }
  double batchnormMinEpsilonCuDNN() const override { return 0; }
  int getNumGPUs() const override { return 1; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex current_device() const override { return kGpu; }
  c10::DeviceIndex getCurrentDevice() const override { return kGpu; }
  void setCurrentDevice(c10::DeviceIndex) const override {}
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex) const override { return kGpu; }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex) const override { return kGpu; }
  void deviceSynchronize(c10::DeviceIndex) const override {}

 private:
  static constexpr long kCudnn = 91900;  // 9.19, which comes with the wheel of torch 2.11
};

// Streams and events of one GPU on which everything is done at once. Autograd makes its device thread because of it.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return gpu(); }
  c10::Device getDevice() const override { return gpu(); }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, c10::DeviceIndex, c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(c10::DeviceIndex) const override {}

 private:
  static c10::Device gpu() { return {c10::kCUDA, kGpu}; }
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, gpu()); }
};

}  // namespace

void plug_in(const Plugs& plugs) {
  // Real CUDA registers its guard when libtorch_cuda is opened.
  base::ensure(!c10::impl::hasDeviceGuardImpl(c10::kCUDA), "real CUDA is not open in a process that simulates it");
  at::CUDAHooksRegistry()->Register("CUDAHooks", [](at::CUDAHooksArgs) -> std::unique_ptr<at::CUDAHooksInterface> {
    return std::make_unique<Hooks>();
  });
  base::ensure(at::detail::getCUDAHooks().hasCUDA(), "torch was not asked for CUDA before the device is simulated");
  c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::kCUDA)].store(
      new Guard);  // never freed, as libtorch's
  c10::SetAllocator(c10::kCUDA, plugs.allocator);
  at::native::cudnn_convolution_backward_stub.set_cuda_dispatch_ptr(plugs.convolution_backward);
  at::native::cudnn_convolution_transpose_backward_stub.set_cuda_dispatch_ptr(plugs.transposed_backward);
  at::native::conv_depthwise2d_backward_stub.set_cuda_dispatch_ptr(plugs.depthwise_backward);
  at::native::_fused_sdp_choice_stub.set_cuda_dispatch_ptr(plugs.attention_choice);
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef sizes) {
  return at::native::view(self, sizes);
}

at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::native::_reshape_alias(self, sizes, strides);
}

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

at::MemoryFormat convolution_format(const at::Tensor& input, const at::Tensor& weight) {
  return at::native::cudnn_conv_suggest_memory_format(input, weight);
}

int64_t flash_attention_code() {
  return static_cast<int64_t>(sdp::SDPBackend::flash_attention);
}

int64_t cudnn_attention_code() {
  return static_cast<int64_t>(sdp::SDPBackend::cudnn_attention);
}

int64_t efficient_attention_code() {
  return static_cast<int64_t>(sdp::SDPBackend::efficient_attention);
}

int64_t math_attention_code() {
  return static_cast<int64_t>(sdp::SDPBackend::math);
}

}  // namespace lockstep::trace::inside
