// sources: lockstep/base/*.cpp lockstep/forecast/address_space.cpp lockstep/forecast/allocator*.cpp
// sources: lockstep/forecast/attention.cpp lockstep/forecast/family.cpp lockstep/forecast/memory*.cpp
// sources: lockstep/forecast/norm_workspace.cpp lockstep/forecast/recording*.cpp lockstep/forecast/replay.cpp
// sources: lockstep/forecast/workspace.cpp
// SPDX-License-Identifier: Apache-2.0
// Any bytes give a recording or a user error; the checksum is put right first, so that the fuzzer gets behind it. What
// was read prints and reads back equal, and can be replayed.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/forecast/memory.h"
#include "lockstep/forecast/recording_text.h"
#include "lockstep/forecast/replay.h"

namespace {

using namespace lockstep;

template <class Read>
void expect_user_error_at_most(const Read& read) {
  try {
    read();
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  expect_user_error_at_most([&] { forecast::parse_recording(text, "raw.rec"); });
  if (const size_t seal = text.rfind("\nsha256 "); seal != std::string::npos) text.resize(seal + 1);
  const std::string sealed = forecast::seal_recording(text);
  expect_user_error_at_most([&] {
    const auto recording = forecast::parse_recording(sealed, "fuzz.rec");
    if (!(forecast::parse_recording(forecast::print_recording(recording), "again.rec") == recording)) std::abort();
    forecast::forecast_memory(recording, {.capacity = int64_t{1} << 30, .cublas_workspace = 1 << 20});
  });
  expect_user_error_at_most([&] {
    const auto recording = forecast::parse_allocator_recording(sealed, "fuzz.rec");
    const auto again = forecast::parse_allocator_recording(forecast::print_allocator_recording(recording), "again.rec");
    if (!(again == recording)) std::abort();
    forecast::AllocatorSettings small = recording.settings;
    small.capacity = int64_t{1} << 34;
    forecast::replay(recording, small, forecast::Addresses::modelled);
    forecast::replay(recording);
  });
  return 0;
}
