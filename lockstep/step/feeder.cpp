// SPDX-License-Identifier: Apache-2.0
// Streams and events through c10's device-neutral classes: this library links no CUDA. VirtualGuardImpl, which hands
// out streams, lies in c10::impl; there is no public way to one without CUDA's headers.
#include "lockstep/step/feeder.h"

#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/loader/quiet_thread.h"
#include "lockstep/run/feeding.h"
#include "lockstep/step/reducer.h"

namespace lockstep::step {

struct Feeder::State {
  enum class Fill { free, filled, in_use };
  struct Slot {
    Fill fill = Fill::free;
    std::vector<task::Field> fields;
    std::vector<at::Tensor> host, there;  // by field: page-locked, and on the device, [rows or more, ...]
    Samples samples;                      // without tensors
    int64_t rows = 0;
    image::Normalisation normalisation = {};
    std::optional<c10::Event> copied, used;  // on a GPU only
    std::exception_ptr error;
  };

  loader::Loader& loader;
  const at::Device device;
  std::optional<c10::Stream> stream;  // of the copies
  std::array<Slot, run::kFeederSlots> slots;

  std::mutex mutex;  // guards the slots' `fill`
  std::condition_variable_any changed;
  size_t next_filled = 0;
  std::jthread thread;

  State(loader::Loader& from, at::Device to) : loader(from), device(to) {
    if (!device.is_cuda()) return;
    stream = c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device);
    for (Slot& slot : slots) {
      slot.copied.emplace(device.type());
      slot.used.emplace(device.type());
    }
  }
  ~State() {
    if (!thread.joinable()) return;
    thread.request_stop();
    thread.join();
    // The slots' memory goes back to the allocator, which knows nothing of the copies' stream.
    for (Slot& slot : slots) {
      try {
        if (slot.copied && slot.copied->was_marked_for_recording()) slot.copied->synchronize();
      } catch (const std::exception&) {
        // A GPU that failed copies nothing more; what it said is on its way already.
      }
    }
  }

  // Memory for the rows, kept from step to step. What the allocator gives out may be in use by kernels that are queued
  // on the stream it was freed on, this thread's own: the copies wait for these.
  void make_room(Slot& slot, const loader::Batch& batch) const {
    if (!slot.there.empty() && slot.there.front().size(0) >= batch.size()) return;
    const auto pinned = at::TensorOptions().pinned_memory(device.is_cuda());
    slot.fields.clear();
    slot.host.clear();
    slot.there.clear();
    for (const auto& values : batch.fields) {
      const at::Tensor from = host_values(values, batch.size());
      slot.fields.push_back(values.field);
      slot.host.push_back(at::empty(from.sizes(), pinned.dtype(from.dtype())));
      slot.there.push_back(device.is_cuda() ? at::empty(from.sizes(), from.options().device(device))
                                            : slot.host.back());
    }
    if (stream) slot.used->record(current_stream());
  }

  c10::Stream current_stream() const { return c10::impl::VirtualGuardImpl(device.type()).getStream(device); }

  void copy(Slot& slot, const loader::Batch& batch) const {
    make_room(slot, batch);
    slot.rows = batch.size();
    if (slot.rows == 0) return;
    if (stream && slot.copied->was_marked_for_recording()) slot.copied->synchronize();  // out of the page-locked memory
    for (size_t i = 0; i < slot.host.size(); ++i) {
      std::memcpy(slot.host[i].mutable_data_ptr(), batch.fields[i].bytes.data(), batch.fields[i].bytes.size());
    }
    if (!stream) return;
    const c10::StreamGuard guard(*stream);
    slot.used->block(*stream);  // what was queued with the slot's earlier batch, or its memory
    for (size_t i = 0; i < slot.host.size(); ++i) {
      slot.there[i].narrow(0, 0, slot.rows).copy_(slot.host[i].narrow(0, 0, slot.rows), /*non_blocking=*/true);
    }
    slot.copied->record(*stream);
  }

  // True: there may be more.
  bool fill(Slot& slot) {
    try {
      loader::Batch batch = loader.next();
      copy(slot, batch);
      slot.samples = {batch.step, batch.epoch, batch.global_size, {}, batch.was_read};
      slot.normalisation = batch.normalisation;
      loader.recycle(std::move(batch));
      return slot.samples.global_size > 0;
    } catch (...) {
      slot.error = std::current_exception();
      return false;
    }
  }

  void run(const std::stop_token& stop) {
    loader::settle_quiet_thread("ls-feed");
    for (size_t turn = 0;; turn = 1 - turn) {
      Slot& slot = slots[turn];
      std::unique_lock lock(mutex);
      if (!changed.wait(lock, stop, [&] { return slot.fill == Fill::free; })) return;
      lock.unlock();
      const bool more = fill(slot);
      lock.lock();
      slot.fill = Fill::filled;
      changed.notify_all();
      if (!more) return;
    }
  }
};

Feeder::Feeder(loader::Loader& loader, at::Device device) : state_(std::make_unique<State>(loader, device)) {
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) { state->run(stop); });
}

Feeder::~Feeder() = default;

Samples Feeder::next() {
  const double start = base::steady_seconds();
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  for (auto& slot : state.slots) {
    if (slot.fill != State::Fill::in_use) continue;
    if (state.stream) slot.used->record(state.current_stream());
    slot.fill = State::Fill::free;
    state.changed.notify_all();
  }
  State::Slot& slot = state.slots[state.next_filled];
  state.changed.wait(lock, [&] { return slot.fill == State::Fill::filled; });
  wait_seconds_ = base::steady_seconds() - start;
  if (slot.error) std::rethrow_exception(slot.error);
  Samples samples = slot.samples;
  if (samples.global_size == 0) return samples;  // stays filled: asked again it is over again
  slot.fill = State::Fill::in_use;
  state.next_filled = 1 - state.next_filled;
  lock.unlock();
  if (state.stream) slot.copied->block(state.current_stream());
  for (size_t i = 0; i < slot.there.size(); ++i) {
    const at::Tensor rows = slot.there[i].narrow(0, 0, slot.rows);
    const bool image = slot.fields[i].kind == task::Field::Kind::image;
    samples.fields.set(slot.fields[i].name, image ? shown_image(rows, slot.normalisation) : rows);
  }
  return samples;
}

}  // namespace lockstep::step
