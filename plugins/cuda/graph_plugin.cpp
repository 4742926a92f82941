// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/graph_plugin.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <memory>

#include "plugins/cuda/failure.h"

struct lockstep_graph_capture {
  at::cuda::CUDAGraph graph;
  bool ended = false;
};

namespace lockstep_cuda_internal {

std::string& last_failure() {
  thread_local std::string words;
  return words;
}

namespace {

const char* failure() {
  return last_failure().c_str();
}

int make_room() {
  return guarded([] {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    c10::cuda::CUDACachingAllocator::emptyCache();
  });
}

// Other threads (the loader's) go on calling CUDA meanwhile: what they do is not captured and not forbidden.
int begin(lockstep_graph_capture** out) {
  return guarded([&] {
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    auto capture = std::make_unique<lockstep_graph_capture>();
    capture->graph.capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    *out = capture.release();
  });
}

int end(lockstep_graph_capture* capture) {
  return guarded([&] {
    capture->ended = true;
    capture->graph.capture_end();
  });
}

int replay(lockstep_graph_capture* capture) {
  return guarded([&] { capture->graph.replay(); });
}

void destroy(lockstep_graph_capture* capture) {
  if (!capture->ended) end(capture);  // its failure is the one that is known already
  cudaGetLastError();                 // or libtorch's next check would find it
  guarded([&] { C10_CUDA_CHECK(cudaDeviceSynchronize()); });
  delete capture;
}

}  // namespace
}  // namespace lockstep_cuda_internal

extern "C" __attribute__((visibility("default"))) const lockstep_graph* lockstep_graph_plugin(void) {
  using namespace lockstep_cuda_internal;
  static const lockstep_graph table = {LOCKSTEP_GRAPH_VERSION, failure, make_room, begin, end, replay, destroy};
  return &table;
}
