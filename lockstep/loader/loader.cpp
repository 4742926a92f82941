// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/render.h"
#include "lockstep/loader/decode_memory.h"
#include "lockstep/loader/fetch.h"
#include "lockstep/loader/loader_needs.h"
#include "lockstep/loader/patient_loader.h"
#include "lockstep/loader/quiet_thread.h"
#include "lockstep/loader/sample_bytes.h"
#include "lockstep/loader/store.h"
#include "lockstep/loader/window_order.h"
#include "lockstep/run/order.h"
#include "lockstep/site/cores.h"
#include "lockstep/sources/file_tree.h"

namespace lockstep::loader {
namespace {

using base::Blame;
using base::Error;
using base::text;

std::span<const std::byte> bytes_of(const std::string& content) {
  return std::as_bytes(std::span(content.data(), content.size()));
}

// What a prediction is about has no members to read.
std::vector<std::string> members_of(const LoaderOptions& options) {
  return options.use == Use::predict ? std::vector<std::string>() : options.task->members();
}

LoaderOptions settled(LoaderOptions options) {
  if (options.threads == 0) options.threads = site::usable_cores();
  options.task = task_of(options);
  return options;
}

constexpr auto kLook = std::chrono::milliseconds(500);  // between two questions whether to go on waiting
constexpr double kPatience = 5;                         // seconds, with threads at the end

using Memory = std::vector<std::byte>;

std::string with_path(const std::string& path, const std::string& reason) {
  return reason.starts_with(path) ? reason : text(path, ": ", reason);
}

// Whatever is wrong with a sample, there is a way to train without it.
std::string way_out(const Error& wrong) {
  if (wrong.blame() != Blame::user) return wrong.fix();
  return text(
      wrong.fix(), wrong.fix().empty() ? "" : "; or ",
      "leave out such samples: --set data.on_bad_sample=skip (lockstep train JOB --check-data lists all of them)");
}

// One batch on its way: rows are handed to threads one by one, in order.
struct Slot {
  enum class Memory { absent, coming, there };
  Batch batch;
  run::LoaderState after;      // the loader's state once this batch is given out
  int64_t first_ticket = 0;    // the fetcher's for row 0
  int64_t first_position = 0;  // of row 0 in the epoch
  Memory memory = Memory::absent;
  int64_t num_taken = 0;
  int64_t num_done = 0;
  int64_t canvas = 0;                                   // of the batch
  std::vector<std::pair<int64_t, BadSample>> bad;       // row and reason
  std::vector<std::pair<int64_t, BadSample>> left_out;  // likewise, of a part of a sample
  int64_t error_row = 0;
  std::exception_ptr error;  // of the first such row

  bool is_done() const { return memory == Memory::there && num_done == batch.size(); }
};

class ThreadedLoader final : public Loader {
 public:
  ThreadedLoader(const Collection& collection, const LoaderOptions& options, const run::LoaderState& from,
                 std::unique_ptr<const Store> store)
      : collection_(collection),
        store_(std::move(store)),
        options_(options),
        fields_(fields_by_canvas(*options.task)),
        num_samples_(static_cast<int64_t>(collection.samples.size())),
        num_threads_(options.threads),
        extents_(loader_extents(collection, options, store_.get())),
        needs_(loader_needs(options, num_samples_, store_.get(), extents_)),
        shares_(share_memory(needs_)),
        decoding_(room_for_images(needs_, shares_)),
        fetcher_(collection.shards ? std::make_unique<Fetcher>(*store_, fetch_options()) : nullptr),
        sequence_(make_sequence()),
        state_{options.seed, from.epoch, from.consumed},
        planned_(wrapped(state_)) {
    state_ = planned_;
    for (int64_t i = 0; i < shares_.num_batches; ++i) plan_batch();
    num_running_ = num_threads_;
    for (int64_t i = 0; i < num_threads_; ++i) {
      threads_.emplace_back([this, i](const std::stop_token& stop) {
        try {
          settle_quiet_thread(text("ls-decode-", i));
          leave_cores_free(options_.free_cores);
          decode_rows(stop);
        } catch (...) {  // no memory for a batch, most likely
          const std::lock_guard lock(mutex_);
          if (!broken_) broken_ = std::current_exception();
          batch_done_.notify_all();
        }
        const std::lock_guard lock(mutex_);
        --num_running_;
        batch_done_.notify_all();
      });
    }
  }

  ~ThreadedLoader() override {
    ask_to_end();
    threads_.clear();  // joins, before what the threads use is gone
  }

  bool end_within(double seconds) override {
    const double until = base::steady_seconds() + seconds;
    ask_to_end();
    {
      std::unique_lock lock(mutex_);
      if (!batch_done_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return num_running_ == 0; }))
        return false;
    }
    return !fetcher_ || fetcher_->end_within(std::max(0.0, until - base::steady_seconds()));
  }

  Batch next() override {
    const double start = base::steady_seconds();
    std::unique_lock lock(mutex_);
    if (slots_.empty()) return {};  // the end of an evaluation, or of what was asked for
    const auto has_come = [this] { return slots_.front()->is_done() || broken_; };
    while (!batch_done_.wait_for(lock, kLook, has_come)) {
      if (options_.give_up && options_.give_up()) throw_given_up(base::steady_seconds() - start);
    }
    if (!slots_.front()->is_done()) std::rethrow_exception(broken_);
    const std::unique_ptr<Slot> slot = std::move(slots_.front());
    slots_.pop_front();
    plan_batch();
    work_there_.notify_all();
    state_ = slot->after;
    if (slot->error) std::rethrow_exception(slot->error);
    keep_once(slot->bad, bad_ids_, bad_samples_);
    keep_once(slot->left_out, left_out_ids_, left_out_);
    Batch batch = std::move(slot->batch);
    batch.wait_seconds = base::steady_seconds() - start;
    return batch;
  }

  void recycle(Batch&& batch) override {
    const std::lock_guard lock(mutex_);
    if (batch.fields.empty() || spare_.size() > slots_.size()) return;
    std::vector<Memory> memory;
    for (auto& values : batch.fields) memory.push_back(std::move(values.bytes));
    spare_.push_back(std::move(memory));
  }

  int64_t steps_per_epoch() const override { return run::num_steps(num_samples_, options_.global_batch); }

  run::LoaderState state() const override {
    const std::lock_guard lock(mutex_);
    return state_;
  }

  PipelineSeconds pipeline_seconds() const override {
    const std::lock_guard lock(mutex_);
    return pipeline_;
  }

  int64_t num_threads() const override { return num_threads_; }

  ReadCounts reads() const override {
    return fetcher_ ? ReadCounts{fetcher_->bytes_read(), fetcher_->num_reads()} : ReadCounts{};
  }

  std::vector<BadSample> bad_samples() const override {
    const std::lock_guard lock(mutex_);
    return bad_samples_;
  }
  std::vector<BadSample> left_out() const override {
    const std::lock_guard lock(mutex_);
    return left_out_;
  }

 private:
  static void keep_once(std::vector<std::pair<int64_t, BadSample>>& rows, std::set<int64_t>& ids,
                        std::vector<BadSample>& kept) {
    std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [row, sample] : rows) {
      if (ids.insert(sample.id).second) kept.push_back(std::move(sample));
    }
  }

  void ask_to_end() {
    for (auto& thread : threads_) thread.request_stop();
    if (fetcher_) fetcher_->abandon();
  }

  // REQUIRES: the mutex.
  [[noreturn]] void throw_given_up(double waited) const {
    throw GaveUp(
        Blame::machine,
        text("no batch has come from ", collection_.root, " for ", static_cast<int64_t>(waited), " s: a read hangs"),
        text("does its file system still answer? ls ", base::shell_path(collection_.root)));
  }

  Sequence make_sequence() const {
    using Kind = Sequence::Kind;
    if (is_balanced()) return Sequence(balanced_order(collection_, options_.data.balance, options_.seed));
    if (is_training() && options_.task->num_canvases() > 1) {
      return Sequence(
          run::GroupedOrder(sample_canvases(collection_, *options_.task), options_.global_batch, options_.seed));
    }
    const Kind kind = !is_training() ? Kind::in_order : extents_.empty() ? Kind::full : Kind::windows;
    return {kind, num_samples_, options_.seed, &extents_, options_.data.window};
  }

  Fetcher::Options fetch_options() const {
    Fetcher::Options fetch;
    fetch.byte_budget = shares_.files;
    fetch.extents = &extents_;
    fetch.extent_budget = shares_.extents;
    return fetch;
  }

  bool is_training() const { return options_.use == Use::train; }
  bool is_balanced() const { return is_training() && options_.data.balance > 0; }

  run::LoaderState wrapped(run::LoaderState state) const {
    if (is_training() && state.consumed >= num_samples_) return {state.seed, state.epoch + 1, 0};
    return state;
  }

  // Appends the next batch, without pixels yet. REQUIRES: the mutex, or no threads yet.
  void plan_batch() {
    const run::Range positions = run::batch_range(num_samples_, options_.global_batch, planned_.consumed);
    if (positions.size() == 0 || num_planned_ == options_.batches) return;
    ++num_planned_;
    const std::vector<int64_t> ids = sequence_.batch(planned_.epoch, positions);
    const run::Range mine =
        run::rank_range({0, positions.size()}, options_.rank, options_.num_ranks, options_.num_slices);
    auto slot = std::make_unique<Slot>();
    slot->canvas = sequence_.canvas(planned_.epoch, positions);
    Batch& batch = slot->batch;
    batch.epoch = planned_.epoch;
    batch.step = planned_.epoch * steps_per_epoch() + planned_.consumed / options_.global_batch;
    batch.global_size = positions.size();
    batch.normalisation = image::normalisation_of(options_.data);
    batch.sample_ids.assign(ids.begin() + mine.begin, ids.begin() + mine.end);
    batch.was_read.assign(batch.sample_ids.size(), 1);
    if (!is_training()) batch.annotations.resize(batch.sample_ids.size());
    planned_ = wrapped({planned_.seed, planned_.epoch, positions.end});
    slot->after = planned_;
    slot->first_ticket = next_ticket_;
    slot->first_position = positions.begin + mine.begin;
    if (fetcher_) {
      for (const int64_t id : batch.sample_ids) fetcher_->want(next_ticket_++, id);
    }
    slots_.push_back(std::move(slot));
  }

  // The earliest batch that has something to do for one more thread. REQUIRES: the mutex.
  Slot* slot_with_work() {
    for (const auto& slot : slots_) {
      if (slot->memory == Slot::Memory::absent) return slot.get();
      if (slot->memory == Slot::Memory::there && slot->num_taken < slot->batch.size()) return slot.get();
    }
    return nullptr;
  }

  void decode_rows(const std::stop_token& stop) {
    const auto encoder = options_.task->encoder();
    Memory memory;  // of the sample in hand
    std::unique_lock lock(mutex_);
    while (true) {
      Slot* slot = nullptr;
      work_there_.wait(lock, stop, [&] { return (slot = slot_with_work()) != nullptr; });
      if (stop.stop_requested()) return;  // whatever is planned: nobody will take it
      if (slot->memory == Slot::Memory::absent) {
        find_memory(*slot, lock);
      } else {
        encode_row(*slot, slot->num_taken++, *encoder, memory, lock);
      }
      if (slot->is_done()) batch_done_.notify_all();
    }
  }

  // Large and zeroed by the vector: done by a decode thread, outside of the lock.
  void find_memory(Slot& slot, std::unique_lock<std::mutex>& lock) {
    slot.memory = Slot::Memory::coming;
    const double start = base::steady_seconds();
    const std::vector<task::Field>& fields = fields_[static_cast<size_t>(slot.canvas)];
    std::vector<Memory> found(fields.size());
    if (!spare_.empty()) {
      found = std::move(spare_.back());
      spare_.pop_back();
    }
    lock.unlock();
    for (size_t i = 0; i < fields.size(); ++i) {
      found[i].resize(static_cast<size_t>(slot.batch.size() * fields[i].bytes()));
    }
    lock.lock();
    pipeline_.copy += base::steady_seconds() - start;
    for (size_t i = 0; i < fields.size(); ++i) slot.batch.fields.push_back({fields[i], std::move(found[i])});
    slot.memory = Slot::Memory::there;
    work_there_.notify_all();
  }

  void encode_row(Slot& slot, int64_t row, task::Encoder& encoder, Memory& memory, std::unique_lock<std::mutex>& lock) {
    const int64_t id = slot.batch.sample_ids[static_cast<size_t>(row)];
    std::vector<std::byte*> out;
    for (auto& values : slot.batch.fields) out.push_back(values.row(row));
    std::optional<BadSample> bad, left_out;
    std::exception_ptr error;
    PipelineSeconds pipeline;
    std::string annotation;
    lock.unlock();
    try {
      encoder.use_canvas(slot.canvas);
      const int64_t draw = is_balanced() ? slot.first_position + row : id;
      fill_row({id, slot.batch.epoch, slot.first_ticket + row, draw}, encoder, memory, out, pipeline);
      if (!is_training()) annotation = encoder.annotation();
      const std::vector<std::string> reasons = encoder.left_out();
      if (!reasons.empty()) left_out = BadSample{id, store_ ? store_->name(id) : "", base::join(reasons, "; ")};
    } catch (const Error& wrong) {
      const std::string path = store_ ? store_->name(id) : "";
      if (options_.data.on_bad_sample == spec::OnBadSample::skip && wrong.blame() == Blame::user) {
        bad = BadSample{id, path, wrong.what()};
        encoder.blank(out);
      } else {
        error = std::make_exception_ptr(Error(wrong.blame(), with_path(path, wrong.what()), way_out(wrong)));
      }
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    pipeline_ += pipeline;
    if (!is_training()) slot.batch.annotations[static_cast<size_t>(row)] = std::move(annotation);
    if (bad) {
      slot.batch.was_read[static_cast<size_t>(row)] = 0;
      slot.bad.emplace_back(row, std::move(*bad));
    }
    if (left_out) slot.left_out.emplace_back(row, std::move(*left_out));
    if (error && (!slot.error || row < slot.error_row)) {
      slot.error = error;
      slot.error_row = row;
    }
    ++slot.num_done;
  }

  void fill_row(const Errand& errand, task::Encoder& encoder, Memory& memory, task::FieldPointers out,
                PipelineSeconds& pipeline) {
    const double start = base::steady_seconds();
    pipeline.samples = 1;
    const auto seed = static_cast<uint64_t>(options_.seed);
    const auto index = static_cast<uint64_t>(errand.id);
    const int32_t label = collection_.samples[static_cast<size_t>(errand.id)].label;
    if (!store_) {
      encoder.draw(label, base::Random(base::derive_seed(seed, "synthetic"), 0, index), out);
      pipeline.augment = base::steady_seconds() - start;
      return;
    }
    const SampleBytes sample(*store_, fetcher_.get(), errand, memory);
    const task::StoredSample stored = sample.stored(label);
    std::optional<DecodeMemory::Held> held;  // of shards the sizes are known, and counted beforehand
    if (!fetcher_ && collection_.main_member.empty())
      held.emplace(decoding_, std::ssize(stored.image) + image::decode_bytes(stored.image));
    const double read = base::steady_seconds();
    pipeline.read = read - start;
    std::optional<base::Random> random;
    if (is_training() && options_.augment) {
      random.emplace(base::derive_seed(seed, "augment"), static_cast<uint32_t>(errand.epoch),
                     static_cast<uint64_t>(errand.draw));
    }
    encoder.encode(stored, random, out);
    pipeline.decode = encoder.decode_seconds();
    pipeline.augment = base::steady_seconds() - read - pipeline.decode;
  }

  const Collection& collection_;
  const std::unique_ptr<const Store> store_;  // null for synthetic samples
  const LoaderOptions options_;
  const std::vector<std::vector<task::Field>> fields_;  // by canvas
  const int64_t num_samples_;
  const int64_t num_threads_;
  const Extents extents_;  // of windows
  const MemoryNeeds needs_;
  const MemoryShares shares_;
  DecodeMemory decoding_;                   // of files of their own
  const std::unique_ptr<Fetcher> fetcher_;  // of shards

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable_any work_there_;
  std::condition_variable batch_done_;
  Sequence sequence_;
  run::LoaderState state_;
  run::LoaderState planned_;  // where the next batch to be planned begins
  std::deque<std::unique_ptr<Slot>> slots_;
  std::vector<std::vector<Memory>> spare_;  // by field
  int64_t num_planned_ = 0;
  int64_t num_running_ = 0;  // threads
  int64_t next_ticket_ = 0;
  PipelineSeconds pipeline_;
  std::vector<BadSample> bad_samples_;
  std::set<int64_t> bad_ids_;
  std::vector<BadSample> left_out_;
  std::set<int64_t> left_out_ids_;
  std::exception_ptr broken_;  // what ended a decode thread: batches that are not done will never be
  std::vector<std::jthread> threads_;
};

void check(const Collection& collection, const LoaderOptions& options, const run::LoaderState& from) {
  if (collection.samples.empty()) throw Error(Blame::user, text(collection.root, ": there is no sample"));
  if (options.use == Use::train && options.task->classes() == task::Classes::of_samples &&
      collection.classes.size() < 2) {
    const std::string names = base::join(collection.classes, ", ");
    throw Error(Blame::user, text(collection.root, ": only one class (", names, "), nothing can be learnt from it"),
                "give each class its own sub-folder; two at least");
  }
  base::ensure(options.global_batch > 0, "a global batch of one sample at least");
  base::ensure(options.rank >= 0 && options.rank < options.num_ranks, "a rank within the ranks");
  const bool begun = from.epoch > 0 || from.consumed > 0;
  if (begun && from.seed != options.seed) {
    throw Error(Blame::user, text("the saved position belongs to seed ", from.seed, ", the job has ", options.seed),
                text("set training.seed=", from.seed, " to go on, or start a new run"));
  }
  if (from.epoch < 0 || from.consumed < 0 || from.consumed > static_cast<int64_t>(collection.samples.size())) {
    throw Error(Blame::user,
                text("the saved position (", from.consumed, " samples of epoch ", from.epoch, ") lies outside of ",
                     collection.root, " with its ", collection.samples.size(), " samples"),
                "resume with the data that the run began with");
  }
}

}  // namespace

std::unique_ptr<Loader> make_loader(const Collection& collection, const LoaderOptions& options,
                                    const run::LoaderState& from) {
  return with_bounded_end(make_waiting_loader(collection, options, from), kPatience);
}

std::unique_ptr<Loader> make_waiting_loader(const Collection& collection, const LoaderOptions& options,
                                            const run::LoaderState& from, std::unique_ptr<const Store> store) {
  const LoaderOptions all = settled(options);
  check(collection, all, from);
  if (!store && !collection.is_synthetic()) store = open_store(collection, members_of(all));
  return std::make_unique<ThreadedLoader>(collection, all, from, std::move(store));
}

std::vector<float> load_image(const std::string& path, const spec::Data& data) {
  std::vector<float> pixels(static_cast<size_t>(data.image_size.pixels() * 3));
  const std::string file = sources::read_plain_file(path);
  try {
    image::Renderer(data).center(bytes_of(file), pixels.data());
  } catch (const Error& error) {
    throw Error(error.blame(), with_path(path, error.what()), error.fix());
  }
  return pixels;
}

}  // namespace lockstep::loader
