// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/patient_loader.h"

#include <mutex>
#include <utility>
#include <vector>

namespace lockstep::loader {
namespace {

// Loaders with a thread that may still come back from its read. Never destroyed: there is no moment that is safe.
struct LeftBehind {
  std::mutex mutex;
  std::vector<std::unique_ptr<Loader>> loaders;
};

LeftBehind& left_behind() {
  static auto* const all = new LeftBehind;
  return *all;
}

class PatientLoader final : public Loader {
 public:
  PatientLoader(std::unique_ptr<Loader> loader, double seconds) : loader_(std::move(loader)), seconds_(seconds) {}
  ~PatientLoader() override {
    if (loader_->end_within(seconds_)) return;
    const std::lock_guard lock(left_behind().mutex);
    left_behind().loaders.push_back(std::move(loader_));
  }
  PatientLoader(const PatientLoader&) = delete;
  PatientLoader& operator=(const PatientLoader&) = delete;

  Batch next() override { return loader_->next(); }
  void recycle(Batch&& batch) override { loader_->recycle(std::move(batch)); }
  int64_t steps_per_epoch() const override { return loader_->steps_per_epoch(); }
  run::LoaderState state() const override { return loader_->state(); }
  PipelineSeconds pipeline_seconds() const override { return loader_->pipeline_seconds(); }
  int64_t num_threads() const override { return loader_->num_threads(); }
  ReadCounts reads() const override { return loader_->reads(); }
  std::vector<BadSample> bad_samples() const override { return loader_->bad_samples(); }
  std::vector<BadSample> left_out() const override { return loader_->left_out(); }
  bool end_within(double seconds) override { return loader_->end_within(seconds); }

 private:
  std::unique_ptr<Loader> loader_;
  const double seconds_;
};

}  // namespace

std::unique_ptr<Loader> with_bounded_end(std::unique_ptr<Loader> loader, double seconds) {
  return std::make_unique<PatientLoader>(std::move(loader), seconds);
}

bool left_threads_behind() {
  const std::lock_guard lock(left_behind().mutex);
  std::erase_if(left_behind().loaders, [](const auto& loader) { return loader->end_within(0); });
  return !left_behind().loaders.empty();
}

}  // namespace lockstep::loader
