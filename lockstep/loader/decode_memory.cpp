// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/decode_memory.h"

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::loader {

void DecodeMemory::take(int64_t bytes) {
  if (bytes > room_) {
    throw base::Error(base::Blame::user,
                      base::text("decoding it takes ", base::format_bytes(static_cast<double>(bytes)),
                                 ", data.memory leaves ", base::format_bytes(static_cast<double>(room_))),
                      base::text("raise data.memory by ", (bytes - room_) / (1 << 20) + 1,
                                 " MiB (with validation: by four times that), shrink the image, or set "
                                 "data.on_bad_sample to \"skip\""));
  }
  std::unique_lock lock(mutex_);
  const int64_t turn = turns_++;
  freed_.wait(lock, [&] { return turn == next_turn_ && in_use_ + bytes <= room_; });
  in_use_ += bytes;
  ++next_turn_;
  freed_.notify_all();  // the next one may fit too
}

void DecodeMemory::give_back(int64_t bytes) {
  const std::lock_guard lock(mutex_);
  in_use_ -= bytes;
  freed_.notify_all();
}

}  // namespace lockstep::loader
