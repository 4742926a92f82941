// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/step_graph.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::step {
namespace {

// A build beside a libtorch without CUDA has no such plug-in, and no graphs.
const lockstep_graph* open_graph_plugin() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&open_graph_plugin), &here);
  const auto file = std::filesystem::path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_graph.so";
  if (!std::filesystem::exists(file)) return nullptr;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    throw base::Error(base::Blame::machine, base::text("cannot open the plug-in of CUDA graphs: ", dlerror()),
                      "build it for this libtorch: `make deps build`; or training.kernels=reference");
  }
  using Entry = const lockstep_graph* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(library, LOCKSTEP_GRAPH_ENTRY));
  if (!entry || entry()->version != LOCKSTEP_GRAPH_VERSION) {
    throw base::Error(base::Blame::machine,
                      base::text(file.string(), " is no plug-in of CUDA graphs of version ", LOCKSTEP_GRAPH_VERSION),
                      "build plugins/cuda of this version again");
  }
  return entry();
}

// All that decides which memory a graph would read, and how much of it.
std::string shape_of(const Samples& samples) {
  std::string shape = std::to_string(samples.global_size);
  const auto add = [&](at::IntArrayRef numbers) {
    for (const int64_t number : numbers) shape += ' ' + std::to_string(number);
  };
  for (const auto& field : samples.fields) {
    shape += ", " + field.name + ' ' + std::to_string(static_cast<int>(field.tensor.scalar_type()));
    add(field.tensor.sizes());
    shape += " by";
    add(field.tensor.strides());
  }
  return shape;
}

bool all_read(const Samples& samples) {
  return samples.num_read() == samples.rows();
}

}  // namespace

bool StepGraph::is_wanted(const StepOptions& options, const comm::Group& group) {
  return options.graph && options.device.is_cuda() && options.training.kernels == spec::Kernels::fused &&
         group.size() == 1 && options.training.virtual_ranks == 0 && objective_of(options)->same_for_all_batches();
}

std::unique_ptr<StepGraph> StepGraph::make(const StepOptions& options, const comm::Group& group,
                                           std::vector<at::Tensor> parameters) {
  if (!is_wanted(options, group) || !parameters.front().has_storage() || parameters.front().storage().data() == nullptr)
    return nullptr;
  const lockstep_graph* plugin = open_graph_plugin();
  if (!plugin) return nullptr;
  return std::unique_ptr<StepGraph>(new StepGraph(*plugin, options.device, std::move(parameters)));
}

StepGraph::StepGraph(const lockstep_graph& plugin, at::Device device, std::vector<at::Tensor> parameters)
    : plugin_(plugin), device_(device), parameters_(std::move(parameters)) {}

StepGraph::~StepGraph() {
  drop();
}

void StepGraph::drop() {
  gradients_.clear();
  sums_ = {};
  if (capture_) plugin_.destroy(capture_);
  capture_ = nullptr;
}

PassSums StepGraph::run(const Samples& samples, const Work& work) {
  if (failed_ || samples.from != 0 || !all_read(samples)) return work(samples);
  std::string shape = shape_of(samples);
  if (captured()) return shape == shape_ ? replay(samples) : work(samples);
  if (!count_.is_due(shape, samples.global_size)) return work(samples);
  shape_ = std::move(shape);
  return capture(samples, work) ? replay(samples) : work(samples);
}

bool StepGraph::capture(const Samples& samples, const Work& work) {
  std::string problem;
  if (plugin_.make_room() != 0) problem = plugin_.failure();
  still_ = samples;
  for (auto& field : still_.fields) field.tensor = field.tensor.clone();
  {
    // Not on the default stream, which cannot be captured.
    const c10::StreamGuard stream(c10::impl::VirtualGuardImpl(device_.type()).getStreamFromGlobalPool(device_));
    if (problem.empty() && plugin_.begin(&capture_) != 0) {
      problem = plugin_.failure();
    } else if (problem.empty()) {
      try {
        sums_ = work(still_);
        if (plugin_.end(capture_) != 0) problem = plugin_.failure();
      } catch (const std::exception& error) {
        problem = error.what();
      }
    }
  }
  gradients_.reserve(parameters_.size());
  for (auto& parameter : parameters_) {
    if (problem.empty()) gradients_.push_back(parameter.grad());
    parameter.mutable_grad().reset();
  }
  if (problem.empty()) return true;
  failed_ = true;
  drop();
  still_ = {};
  std::fprintf(stderr, "lockstep: note: this step cannot be a CUDA graph, and the run goes on without one: %s\n",
               problem.substr(0, problem.find('\n')).c_str());
  return false;
}

PassSums StepGraph::replay(const Samples& samples) {
  auto to = still_.fields.begin();
  for (const auto& field : samples.fields) (to++)->tensor.copy_(field.tensor, /*non_blocking=*/true);
  if (plugin_.replay(capture_) != 0) {
    throw base::Error(base::Blame::machine, base::text("the step's CUDA graph: ", plugin_.failure()),
                      "training.kernels=reference runs without one");
  }
  for (size_t i = 0; i < parameters_.size(); ++i) parameters_[i].mutable_grad() = gradients_[i];
  return sums_;
}

}  // namespace lockstep::step
