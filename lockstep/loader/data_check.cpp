// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/data_check.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/store.h"

namespace lockstep::loader {
namespace {

// What one thread needs to look at samples.
class SampleCheck {
 public:
  SampleCheck(const Collection& collection, const Store& store, const task::Task& task)
      : collection_(collection), store_(store), encodes_(!task.members().empty()), encoder_(task.encoder()) {
    for (const auto& field : task.fields()) rows_.emplace_back(static_cast<size_t>(field.bytes()));
    for (auto& row : rows_) out_.push_back(row.data());
  }

  // User error when the sample cannot be used. What of it cannot be, else.
  std::string run(int64_t id) {
    const auto bytes = store_.read(id, memory_);
    store_.check(id, bytes);
    const auto parts = store_.split(id, bytes);
    const bool is_image = collection_.main_member.empty();
    if (is_image) (void)image::decode_image(parts.front());
    if (is_image && !encodes_) return "";
    const int32_t label = collection_.samples[static_cast<size_t>(id)].label;
    encoder_->encode({label, parts.front(), {parts.begin() + 1, parts.end()}}, std::nullopt, out_);
    return base::join(encoder_->left_out(), "; ");
  }

 private:
  const Collection& collection_;
  const Store& store_;
  const bool encodes_;
  std::unique_ptr<task::Encoder> encoder_;
  std::vector<std::byte> memory_;
  std::vector<std::vector<std::byte>> rows_;
  std::vector<std::byte*> out_;
};

}  // namespace

std::vector<BadSample> find_bad_samples(const Collection& collection, const task::Task& task, int64_t threads,
                                        const std::function<void(int64_t)>& progress) {
  if (collection.is_synthetic()) return {};
  const auto store = open_store(collection, task.members());
  const auto count = static_cast<int64_t>(collection.samples.size());
  std::atomic<int64_t> next = 0;
  std::mutex mutex;  // guards what follows
  std::vector<BadSample> bad;
  std::exception_ptr error;
  int64_t done = 0;
  const auto work = [&] {
    SampleCheck check(collection, *store, task);
    for (int64_t id = next++; id < count; id = next++) {
      std::string reason, left_out;
      std::exception_ptr wrong;
      try {
        left_out = check.run(id);
      } catch (const base::Error& found) {
        if (found.blame() == base::Blame::user)
          reason = found.what();
        else
          wrong = std::current_exception();
      } catch (...) {
        wrong = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      if (wrong) {
        if (!error) error = wrong;
        next = count;  // nobody goes on
        return;
      }
      if (!reason.empty()) bad.push_back({id, store->name(id), reason});
      if (!left_out.empty()) bad.push_back({id, store->name(id), left_out, true});
      ++done;
      if (progress) progress(done);
    }
  };
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
  std::sort(bad.begin(), bad.end(), [](const BadSample& a, const BadSample& b) { return a.id < b.id; });
  return bad;
}

}  // namespace lockstep::loader
