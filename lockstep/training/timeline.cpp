// SPDX-License-Identifier: Apache-2.0
// libtorch's profiler stubs (torch/csrc/profiler) are no public API; they reach NVTX without CUDA's headers.
#include "lockstep/training/timeline.h"

#include <ATen/record_function.h>
#include <cxxabi.h>
#include <torch/csrc/profiler/stubs/base.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::training {
namespace {

using base::Json;

// The clock of CUPTI's time stamps.
int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

enum class Row : int64_t { session = 1, operators = 2, gpu = 3 };  // processes of the trace

Json event_of(const std::string& name, int64_t thread, int64_t start, int64_t end, Row row) {
  Json event = Json::object();
  event["ph"] = "X";
  event["name"] = name;
  event["pid"] = static_cast<int64_t>(row);
  event["tid"] = thread;
  event["ts"] = static_cast<double>(start) * 1e-3;  // microseconds
  event["dur"] = static_cast<double>(end - start) * 1e-3;
  return event;
}

Json name_of_row(Row row, const char* name) {
  Json event = Json::object();
  event["ph"] = "M";
  event["name"] = "process_name";
  event["pid"] = static_cast<int64_t>(row);
  event["args"]["name"] = name;
  return event;
}

std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status), std::free);
  return status == 0 ? name.get() : mangled;
}

const torch::profiler::impl::ProfilerStubs* nvtx() {
  const auto* stubs = torch::profiler::impl::cudaStubs();
  return stubs && stubs->enabled() ? stubs : nullptr;
}

struct Called : at::ObserverContext {
  int64_t start = 0;
};

}  // namespace

struct Timeline::Watch {
  struct Piece {
    std::string name;
    int64_t start = 0, end = 0;  // nanoseconds
    int64_t thread = 0;          // in the order in which they were seen
  };
  std::mutex mutex;
  std::vector<Piece> session, operators;
  std::vector<std::thread::id> threads;
  std::unique_ptr<step::Gpu> gpu;
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
  // libtorch's callbacks are plain functions: nothing else reaches them. An operator of another thread (the feeder's)
  // may end when the watch does, so it is looked up under the lock that stop() takes.
  static Watch* active;
  static std::mutex active_mutex;

  explicit Watch(at::Device device) {
    if (device.is_cuda()) {
      gpu = std::make_unique<step::Gpu>(device);
      gpu->watch_kernels();
    }
    {
      const std::scoped_lock lock(active_mutex);
      active = this;
    }
    handle = at::addGlobalCallback(at::RecordFunctionCallback(&Watch::on_start, &Watch::on_end)
                                       .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  }
  ~Watch() {
    stop();
    try {
      if (gpu) gpu->take_kernels();  // ends the watch, where nobody has
    } catch (const std::exception&) {
      // What the GPU said is on its way already.
    }
  }
  void stop() {
    if (handle != at::INVALID_CALLBACK_HANDLE) at::removeCallback(handle);
    handle = at::INVALID_CALLBACK_HANDLE;
    const std::scoped_lock lock(active_mutex);
    active = nullptr;
  }

  static std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& /*function*/) {
    auto called = std::make_unique<Called>();
    called->start = now_ns();
    return called;
  }
  static void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
    const auto* called = static_cast<const Called*>(context);
    if (!called) return;
    const std::scoped_lock lock(active_mutex);
    if (active) active->add(active->operators, {function.name(), called->start, now_ns()});
  }

  void add(std::vector<Piece>& to, Piece piece) {
    const std::scoped_lock lock(mutex);
    const auto self = std::this_thread::get_id();
    auto found = std::find(threads.begin(), threads.end(), self);
    if (found == threads.end()) found = threads.insert(threads.end(), self);
    piece.thread = found - threads.begin();
    to.push_back(std::move(piece));
  }
};

Timeline::Watch* Timeline::Watch::active = nullptr;
std::mutex Timeline::Watch::active_mutex;

Timeline::Timeline(base::Path file, at::Device device, int64_t num_steps)
    : file_(std::move(file)), device_(device), first_(std::clamp<int64_t>(num_steps - kSteps, 0, kFirst)) {}

Timeline::~Timeline() = default;

void Timeline::before_step() {
  if (steps_ == first_ && !written_) watch_ = std::make_unique<Watch>(device_);
  ++steps_;
}

bool Timeline::write() {
  if (!watch_) return false;
  watch_->stop();
  Json events = Json::array();
  events.push_back(name_of_row(Row::session, "session"));
  const auto add = [&](const std::vector<Watch::Piece>& pieces, Row row) {
    for (const auto& piece : pieces) {
      events.push_back(event_of(piece.name, piece.thread, piece.start, piece.end, row));
    }
  };
  add(watch_->session, Row::session);
  events.push_back(name_of_row(Row::operators, "operators, by thread"));
  add(watch_->operators, Row::operators);
  if (watch_->gpu) {
    events.push_back(name_of_row(Row::gpu, "GPU, by stream"));
    for (const auto& work : watch_->gpu->take_kernels()) {
      const char* plain = work.work == LOCKSTEP_CUDA_COPY ? "copy" : work.work == LOCKSTEP_CUDA_SET ? "set" : nullptr;
      const std::string name = plain ? plain : readable(work.name);
      events.push_back(event_of(name, work.stream, work.start_ns, work.end_ns, Row::gpu));
    }
    watch_->gpu.reset();
  }
  watch_.reset();
  written_ = true;
  Json trace = Json::object();
  trace["displayTimeUnit"] = "ms";
  trace["traceEvents"] = std::move(events);
  base::write_file(file_, trace.dump(-1));
  return true;
}

Timeline::Range::Range(Timeline* timeline, const char* name)
    : timeline_(timeline), name_(name), start_(timeline ? now_ns() : 0) {
  if (!timeline_) return;
  if (const auto* stubs = nvtx()) stubs->rangePush(name);
}

Timeline::Range::~Range() {
  if (!timeline_) return;
  if (const auto* stubs = nvtx()) stubs->rangePop();
  if (timeline_->watch_) timeline_->watch_->add(timeline_->watch_->session, {name_, start_, now_ns()});
}

}  // namespace lockstep::training
