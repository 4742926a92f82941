// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/patient_loader.h"

#include <atomic>
#include <utility>

namespace lockstep::loader {
namespace {

std::atomic<bool> g_left_behind{false};

class PatientLoader final : public Loader {
 public:
  PatientLoader(std::unique_ptr<Loader> loader, double seconds) : loader_(std::move(loader)), seconds_(seconds) {}
  ~PatientLoader() override {
    if (loader_->end_within(seconds_)) return;
    g_left_behind = true;
    static_cast<void>(loader_.release());
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
  return g_left_behind;
}

}  // namespace lockstep::loader
