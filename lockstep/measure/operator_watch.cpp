// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/operator_watch.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/measure/bench.h"
#include "lockstep/step/reducer.h"
#include "lockstep/trace/operator.h"

namespace lockstep::measure {
namespace {

using forecast::OperatorClass;

constexpr std::string_view kBoth = " (both gradients)";  // behind the name of what could not be split

// What a pass over the work asks for; each disturbs the others, so each has its own runs.
enum class Pass { describe_and_time, host, scratch };
enum class Timer { clock, kernels, events };

struct Call {
  const c10::FunctionSchema* schema = nullptr;
  trace::Parts parts;  // Pass::describe_and_time
  double seconds = 0;  // of the host
  lockstep_cuda_event* from = nullptr;
  lockstep_cuda_event* to = nullptr;
};

// The state of one pass. libtorch's callbacks are plain functions, so it is reached through `active`.
struct Watching {
  Watching(Pass which, Timer by, const step::Gpu* on) : pass(which), timer(by), gpu(on) {}

  const Pass pass;
  const Timer timer;
  const step::Gpu* const gpu;
  std::mutex mutex;  // calls come from the main and from autograd's thread
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::string> failures;
};

Watching* active = nullptr;
thread_local bool inside_operator = false;
thread_local int backward_depth = 0;

struct Observed : at::ObserverContext {
  Call* call = nullptr;  // null: a node of the backward graph
  double start = 0;
};

const c10::FunctionSchema* watched_schema(const at::RecordFunction& function) {
  const auto name = function.operator_name();
  if (!name || trace::is_composite(*name)) return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema(*name);
  return handle ? &handle->schema() : nullptr;
}

void begin_call(Watching& pass, Call& call, uint64_t number, const at::RecordFunction& function) {
  if (pass.pass == Pass::describe_and_time) {
    const auto inputs = function.inputs();
    call.parts = trace::describe_call(*call.schema, {inputs.data(), inputs.size()});
    for (auto& part : call.parts) {
      part.phase = part.kind == OperatorClass::optimizer ? forecast::Phase::update
                   : backward_depth > 0                  ? forecast::Phase::backward
                                                         : forecast::Phase::forward;
    }
    if (pass.timer == Timer::kernels) pass.gpu->tag(number + 1);
    if (pass.timer == Timer::events) {
      pass.gpu->plugin().event_create(&call.from);
      pass.gpu->plugin().event_create(&call.to);
      pass.gpu->plugin().event_record(call.from);
    }
  }
  if (pass.pass == Pass::scratch) pass.gpu->mark(2 * number);
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  if (active == nullptr || inside_operator) return nullptr;
  auto seen = std::make_unique<Observed>();
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    ++backward_depth;
    return seen;
  }
  const auto* schema = watched_schema(function);
  if (schema == nullptr) return nullptr;
  inside_operator = true;
  uint64_t number = 0;
  {
    const std::lock_guard lock(active->mutex);
    number = active->calls.size();
    active->calls.push_back(std::make_unique<Call>());
    seen->call = active->calls.back().get();
  }
  seen->call->schema = schema;
  try {
    begin_call(*active, *seen->call, number, function);
  } catch (const std::exception& error) {
    const std::lock_guard lock(active->mutex);
    active->failures.emplace_back(error.what());
  }
  seen->start = base::steady_seconds();
  return seen;
}

void end_call(Watching& pass, Call& call, const at::RecordFunction& function) {
  if (pass.pass == Pass::describe_and_time) {
    if (pass.timer == Timer::kernels) pass.gpu->untag();
    if (pass.timer == Timer::events) pass.gpu->plugin().event_record(call.to);
    trace::add_results(call.parts, *call.schema, function.outputs());
  }
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  auto* seen = static_cast<Observed*>(context);
  if (seen == nullptr || active == nullptr) return;
  if (seen->call == nullptr) {
    --backward_depth;
    return;
  }
  seen->call->seconds = base::steady_seconds() - seen->start;
  try {
    if (active->pass == Pass::scratch) active->gpu->mark(1);  // any odd sign: the call in progress ends
    end_call(*active, *seen->call, function);
  } catch (const std::exception& error) {
    const std::lock_guard lock(active->mutex);
    active->failures.emplace_back(error.what());
  }
  inside_operator = false;
}

// Watches one run of the work.
void run_pass(Watching& pass, const std::function<void()>& work) {
  base::ensure(active == nullptr, "one watch at a time");
  const bool describe = pass.pass == Pass::describe_and_time;
  active = &pass;
  const auto handle =
      at::addGlobalCallback(at::RecordFunctionCallback(&on_start, &on_end)
                                .needsInputs(describe)
                                .needsOutputs(describe)
                                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  struct End {
    at::CallbackHandle handle;
    ~End() {
      at::removeCallback(handle);
      active = nullptr;
      inside_operator = false;
      backward_depth = 0;
    }
  } const end{handle};
  work();
  if (pass.gpu) pass.gpu->synchronize();
}

using Key = std::tuple<std::string, int, int, int, std::vector<int64_t>, double, double>;

Key key_of(const forecast::Operator& what) {
  return {what.name,
          static_cast<int>(what.kind),
          static_cast<int>(what.type),
          static_cast<int>(what.phase),
          what.shape,
          what.flops,
          what.bytes};
}

// Gathers calls of the same key over the repetitions.
struct Gathered {
  SeenOperator seen;
  std::vector<double> sums;      // seconds, one for each repetition
  std::vector<double> launches;  // likewise
  double longest = 0;            // piece of work
};

class Gathering {
 public:
  // `seconds` and the pieces of work of one part of call `number` in this repetition.
  void add(const forecast::Operator& what, size_t repeat, double seconds, std::span<const lockstep_cuda_kernel> work) {
    auto [found, fresh] = by_key_.try_emplace(key_of(what), order_.size());
    if (fresh) order_.push_back({{what}, {}, {}, 0});
    Gathered& row = order_[found->second];
    row.sums.resize(std::max(row.sums.size(), repeat + 1));
    row.launches.resize(row.sums.size());
    row.sums[repeat] += seconds;
    row.launches[repeat] += static_cast<double>(work.size());
    if (repeat == 0) ++row.seen.count;
    for (const auto& piece : work) {
      const auto length = static_cast<double>(piece.end_ns - piece.start_ns);
      if (length <= row.longest) continue;
      row.longest = length;
      row.seen.kernel = std::string(piece.name).substr(0, 96);
    }
  }

  SeenOperator* find(const forecast::Operator& what) {
    const auto found = by_key_.find(key_of(what));
    return found == by_key_.end() ? nullptr : &order_[found->second].seen;
  }

  std::vector<SeenOperator> finish(bool counted_launches) {
    std::vector<SeenOperator> all;
    for (auto& row : order_) {
      const auto count = static_cast<double>(std::max<int64_t>(1, row.seen.count));
      row.seen.seconds = median(row.sums) / count;
      if (counted_launches) row.seen.what.launches = static_cast<int64_t>(median(row.launches) / count + 0.5);
      row.seen.host_seconds /= count;
      all.push_back(row.seen);
    }
    return all;
  }

 private:
  std::map<Key, size_t> by_key_;
  std::vector<Gathered> order_;
};

double seconds_of(std::span<const lockstep_cuda_kernel> work) {
  double sum = 0;
  for (const auto& piece : work) sum += static_cast<double>(piece.end_ns - piece.start_ns) * 1e-9;
  return sum;
}

bool name_has(const lockstep_cuda_kernel& piece, std::initializer_list<std::string_view> words) {
  const std::string_view name = piece.name;
  return std::any_of(words.begin(), words.end(), [&](auto word) { return name.find(word) != std::string_view::npos; });
}

// Where the weight gradient's work begins among that of one convolution_backward, which makes the input gradient first.
// -1: the names do not say.
int64_t first_of_weight_gradient(std::span<const lockstep_cuda_kernel> work) {
  const auto size = static_cast<int64_t>(work.size());
  for (int64_t i = 0; i < size; ++i) {
    if (name_has(work[static_cast<size_t>(i)], {"wgrad", "grad_weight", "backward_filter", "BackwardFilter"})) return i;
  }
  for (int64_t i = size - 1; i >= 0; --i) {
    if (name_has(work[static_cast<size_t>(i)], {"dgrad", "grad_input", "backward_data", "BackwardData"})) return i + 1;
  }
  return -1;
}

// One entry for two parts that cannot be told apart.
forecast::Operator both_gradients(const trace::Parts& parts) {
  forecast::Operator both = parts.back();
  both.name += kBoth;
  both.flops += parts.front().flops;
  both.bytes += parts.front().bytes;
  return both;
}

void gather_call(Gathering& all, const Call& call, size_t repeat, std::span<const lockstep_cuda_kernel> work,
                 double seconds) {
  if (call.parts.size() < 2) {
    all.add(call.parts.at(0), repeat, seconds, work);
    return;
  }
  const int64_t cut = work.empty() ? -1 : first_of_weight_gradient(work);
  if (cut > 0 && cut < static_cast<int64_t>(work.size())) {
    const auto split = static_cast<size_t>(cut);
    all.add(call.parts[0], repeat, seconds_of(work.first(split)), work.first(split));
    all.add(call.parts[1], repeat, seconds_of(work.subspan(split)), work.subspan(split));
    return;
  }
  all.add(both_gradients(call.parts), repeat, seconds, work);
}

void gather_kernels(Gathering& all, SeenWork& work, const Watching& pass, size_t repeat) {
  const auto kernels = pass.gpu->take_kernels();
  std::vector<std::vector<lockstep_cuda_kernel>> by_call(pass.calls.size());
  double busy = 0;
  double stray = 0;
  for (const auto& piece : kernels) {
    const double seconds = static_cast<double>(piece.end_ns - piece.start_ns) * 1e-9;
    busy += seconds;
    if (piece.tag == 0 || piece.tag > by_call.size()) {
      stray += seconds;
    } else {
      by_call[piece.tag - 1].push_back(piece);
    }
  }
  for (size_t i = 0; i < by_call.size(); ++i) {
    gather_call(all, *pass.calls[i], repeat, by_call[i], seconds_of(by_call[i]));
  }
  work.busy_seconds = busy;
  work.stray_seconds = stray;
  work.launches = static_cast<int64_t>(kernels.size());
  if (!kernels.empty()) {
    int64_t last = 0;
    for (const auto& piece : kernels) last = std::max(last, piece.end_ns);
    work.span_seconds = static_cast<double>(last - kernels.front().start_ns) * 1e-9;
  }
}

void gather_events(Gathering& all, SeenWork& work, const Watching& pass, size_t repeat) {
  work.busy_seconds = 0;
  for (const auto& call : pass.calls) {
    double seconds = 0;
    pass.gpu->plugin().event_seconds(call->from, call->to, &seconds);
    pass.gpu->plugin().event_destroy(call->from);
    pass.gpu->plugin().event_destroy(call->to);
    gather_call(all, *call, repeat, {}, seconds);
    work.busy_seconds += seconds;
  }
}

void gather_clock(Gathering& all, SeenWork& work, const Watching& pass, size_t repeat) {
  work.busy_seconds = 0;
  for (const auto& call : pass.calls) {
    gather_call(all, *call, repeat, {}, call->seconds);
    work.busy_seconds += call->seconds;
  }
}

void check_failures(const Watching& pass) {
  if (pass.failures.empty()) return;
  throw base::Error(base::Blame::machine,
                    base::text("watching operators: ", pass.failures[0], " (", pass.failures.size(), " times)"), "");
}

// CUPTI gives each piece's own time. Where it refuses (another profiler is attached, a container without the right),
// events around each call do: these count the wait for the host too.
Timer timer_for(const step::Gpu* gpu) {
  if (gpu == nullptr) return Timer::clock;
  static const Timer kOfGpus = [&] {
    try {
      gpu->watch_kernels();
      gpu->take_kernels();
      return Timer::kernels;
    } catch (const base::Error& error) {
      std::fprintf(stderr, "%s\n  events around each operator are used instead\n", error.what());
      return Timer::events;
    }
  }();
  return kOfGpus;
}

// The calls of the last described run, in order, so that a pass without descriptions can be matched to them.
bool same_calls(const Watching& a, const Watching& b) {
  if (a.calls.size() != b.calls.size()) return false;
  for (size_t i = 0; i < a.calls.size(); ++i) {
    if (a.calls[i]->schema != b.calls[i]->schema) return false;
  }
  return true;
}

SeenOperator* row_of_call(Gathering& all, const Call& call) {
  for (auto part = call.parts.rbegin(); part != call.parts.rend(); ++part) {
    if (SeenOperator* row = all.find(*part)) return row;
  }
  return all.find(both_gradients(call.parts));
}

void watch_host(Gathering& all, SeenWork& work, const Watching& described, const std::function<void()>& run) {
  Watching pass(Pass::host, Timer::clock, described.gpu);
  const double start = base::steady_seconds();
  run_pass(pass, [&] {
    run();
    work.host_seconds = base::steady_seconds() - start;
  });
  if (!same_calls(described, pass)) return;
  for (size_t i = 0; i < pass.calls.size(); ++i) {
    SeenOperator* row = row_of_call(all, *described.calls[i]);
    if (row == nullptr) continue;
    row->host_seconds += pass.calls[i]->seconds;
    if (row->what.kind == OperatorClass::host) work.waiting_seconds += pass.calls[i]->seconds;
  }
  work.host_seconds -= work.waiting_seconds;
}

// What each call allocates and frees again before it returns.
void watch_scratch(Gathering& all, const Watching& described, const std::function<void()>& run) {
  Watching pass(Pass::scratch, Timer::clock, described.gpu);
  described.gpu->start_history();
  run_pass(pass, run);
  described.gpu->stop_history();
  const auto acts = described.gpu->take_history();
  if (!same_calls(described, pass)) return;
  std::vector<std::pair<uint64_t, int64_t>> open;  // address and bytes, born in the call in progress
  std::vector<int64_t> freed;
  int64_t call = -1;
  for (const auto& act : acts) {
    if (act.action == LOCKSTEP_CUDA_MARK && act.address % 2 == 0) {
      call = static_cast<int64_t>(act.address / 2);
      open.clear();
      freed.clear();
    } else if (act.action == LOCKSTEP_CUDA_MARK && call >= 0) {
      SeenOperator* row = row_of_call(all, *described.calls[static_cast<size_t>(call)]);
      if (row != nullptr && row->scratch.empty()) row->scratch = freed;
      call = -1;
    } else if (act.action == LOCKSTEP_CUDA_ALLOC) {
      open.emplace_back(act.address, act.bytes);
    } else if (act.action == LOCKSTEP_CUDA_FREE_REQUESTED) {
      const auto found = std::find_if(open.begin(), open.end(), [&](auto& one) { return one.first == act.address; });
      if (found == open.end()) continue;
      freed.push_back(found->second);
      open.erase(found);
    }
  }
}

}  // namespace

SeenWork watch_operators(const std::function<void()>& work, const WatchOptions& options) {
  SeenWork result;
  Gathering all;
  const Timer timer = timer_for(options.gpu);
  result.timer = timer == Timer::clock ? "clock" : timer == Timer::kernels ? "kernels" : "events";
  std::unique_ptr<Watching> last;
  for (int64_t i = 0; i < options.repeats; ++i) {
    last = std::make_unique<Watching>(Pass::describe_and_time, timer, options.gpu);
    if (timer == Timer::kernels) options.gpu->watch_kernels();
    run_pass(*last, work);
    const auto repeat = static_cast<size_t>(i);
    if (timer == Timer::kernels) gather_kernels(all, result, *last, repeat);
    if (timer == Timer::events) gather_events(all, result, *last, repeat);
    if (timer == Timer::clock) gather_clock(all, result, *last, repeat);
    check_failures(*last);
  }
  if (options.gpu && options.host) watch_host(all, result, *last, work);
  if (options.gpu && options.scratch) watch_scratch(all, *last, work);
  result.operators = all.finish(timer == Timer::kernels);
  for (const auto& seen : result.operators) {
    if (seen.both_gradients()) result.unsplit_seconds += seen.seconds * static_cast<double>(seen.count);
  }
  return result;
}

bool SeenOperator::both_gradients() const {
  return what.name.ends_with(kBoth);
}

base::Json operator_row(const SeenOperator& seen) {
  base::Json row = base::Json::object();
  row["name"] = seen.what.name;
  row["kind"] = name_of(seen.what.kind);
  row["type"] = name_of(seen.what.type);
  row["phase"] = name_of(seen.what.phase);
  row["flops"] = seen.what.flops;
  row["bytes"] = seen.what.bytes;
  row["shape"] = base::Json::array_of(seen.what.shape);
  row[seen.both_gradients() ? "both_seconds" : "seconds"] = seen.seconds;
  row["count"] = seen.count;
  row["launches"] = seen.what.launches;
  if (seen.host_seconds > 0) row["host_seconds"] = seen.host_seconds;
  if (!seen.scratch.empty()) {
    row["workspace_bytes"] = *std::max_element(seen.scratch.begin(), seen.scratch.end());
    row["scratch"] = base::Json::array_of(seen.scratch);
  }
  if (!seen.kernel.empty()) row["kernel"] = seen.kernel;
  return row;
}

}  // namespace lockstep::measure
