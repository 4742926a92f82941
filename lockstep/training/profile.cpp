// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/profile.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <array>
#include <memory>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/step/reducer.h"
#include "lockstep/trace/operator.h"

namespace lockstep::training {

struct OperatorProfile::Sums {
  std::array<double, 64> by_class{};
  bool inside = false;               // an operator whose time is being taken: what it calls is part of it
  static thread_local Sums* active;  // libtorch's callbacks are plain functions: nothing else reaches them

  static std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function);
  static void on_end(const at::RecordFunction& function, at::ObserverContext* context);
};

thread_local OperatorProfile::Sums* OperatorProfile::Sums::active = nullptr;

namespace {

struct Timed : at::ObserverContext {
  forecast::OperatorClass kind = forecast::OperatorClass::elementwise;
  double start = 0;
};

}  // namespace

std::unique_ptr<at::ObserverContext> OperatorProfile::Sums::on_start(const at::RecordFunction& function) {
  if (active == nullptr || active->inside) return nullptr;
  const auto name = function.operator_name();
  if (!name || trace::is_composite(*name)) return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema(*name);
  if (!handle) return nullptr;
  auto timed = std::make_unique<Timed>();
  timed->kind = trace::class_of(handle->schema());
  active->inside = true;
  timed->start = base::steady_seconds();
  return timed;
}

void OperatorProfile::Sums::on_end(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  const auto* timed = static_cast<const Timed*>(context);
  if (timed == nullptr || active == nullptr) return;
  active->by_class[static_cast<size_t>(timed->kind)] += base::steady_seconds() - timed->start;
  active->inside = false;
}

OperatorProfile::OperatorProfile() : sums_(std::make_unique<Sums>()) {
  base::ensure(Sums::active == nullptr, "one profile at a time in a thread");
  Sums::active = sums_.get();
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&Sums::on_start, &Sums::on_end).scopes({at::RecordScope::FUNCTION}));
}

OperatorProfile::~OperatorProfile() {
  at::removeCallback(handle_);
  Sums::active = nullptr;
}

std::map<std::string, double> OperatorProfile::seconds_by_class() const {
  std::map<std::string, double> all;
  const auto names = choices_of(forecast::OperatorClass{});
  for (size_t i = 0; i < names.size(); ++i) {
    if (sums_->by_class[i] > 0) all[names[i]] = sums_->by_class[i];
  }
  return all;
}

}  // namespace lockstep::training
