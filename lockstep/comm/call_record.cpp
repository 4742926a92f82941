// SPDX-License-Identifier: Apache-2.0
#include "lockstep/comm/call_record.h"

namespace lockstep::comm {

int64_t CallRecord::begin(const char* name, Among among) {
  const std::lock_guard lock(mutex_);
  state_.started += among == Among::all ? 1 : 0;
  under_way_[++tickets_] = {name, among};
  return tickets_;
}

void CallRecord::end(int64_t ticket, bool good) {
  const std::lock_guard lock(mutex_);
  const auto call = under_way_.find(ticket);
  if (call == under_way_.end()) return;
  state_.answered += call->second.among == Among::all ? 1 : 0;
  state_.failed |= !good;
  under_way_.erase(call);
}

CallState CallRecord::state() const {
  const std::lock_guard lock(mutex_);
  CallState state = state_;
  if (!under_way_.empty()) state.waiting = under_way_.begin()->second.name;
  return state;
}

}  // namespace lockstep::comm
