// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/budget.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/loader/file_memory.h"

namespace lockstep::loader {
namespace {

constexpr int64_t kThreadBytes = int64_t{1} << 20;       // tables, rows, a result's 8-bit copy
constexpr int64_t kMostFilesBytes = int64_t{256} << 20;  // more read ahead than this has never helped
constexpr int64_t kLeastFilesBytes = int64_t{1} << 20;   // a few images

int64_t decoding_bytes(const MemoryNeeds& needs) {
  return needs.threads * (needs.largest_image + needs.largest_file + kThreadBytes);
}

int64_t least_files_bytes(const MemoryNeeds& needs) {
  return std::max(FileMemory::room_of(needs.largest_file), kLeastFilesBytes);
}

// Two batches, a file, an extent and what the threads have in hand.
int64_t least_budget(const MemoryNeeds& needs) {
  return decoding_bytes(needs) + least_files_bytes(needs) + needs.largest_extent + 2 * needs.batch;
}

}  // namespace

int64_t least_memory(const MemoryNeeds& needs) {
  const auto mebibytes = static_cast<int64_t>(static_cast<double>(least_budget(needs)) / needs.share / (1 << 20)) + 1;
  return mebibytes << 20;
}

MemoryShares share_memory(const MemoryNeeds& needs) {
  MemoryShares shares;
  const auto budget = static_cast<int64_t>(needs.share * static_cast<double>(needs.memory));
  shares.decoding = decoding_bytes(needs);
  const int64_t least_files = least_files_bytes(needs);
  const int64_t least = least_budget(needs);
  if (least > budget) {
    throw base::Error(base::Blame::user,
                      base::text("data.memory leaves this loader ", base::exact_bytes(budget), "; two batches of ",
                                 base::format_bytes(static_cast<double>(needs.batch)), ", ", needs.threads,
                                 " decode threads", needs.largest_extent > 0 ? ", an extent" : "", " and a file take ",
                                 base::format_bytes(static_cast<double>(least))),
                      base::text("--set data.memory=", least_memory(needs) >> 20, "MiB, or a smaller batch"));
  }
  const int64_t rest = budget - shares.decoding - needs.largest_extent - 2 * needs.batch;
  shares.files = std::clamp(rest / 4, least_files, kMostFilesBytes);
  if (least_files > kMostFilesBytes) shares.files = least_files;
  // Twice: while one window is used up, the next one comes.
  shares.extents = std::max(std::min(2 * needs.window, (budget - shares.decoding - shares.files - 2 * needs.batch) / 2),
                            needs.largest_extent);
  const int64_t pixels = budget - shares.decoding - shares.files - shares.extents;
  shares.num_batches =
      std::clamp<int64_t>(pixels / std::max<int64_t>(needs.batch, 1) - 1, 1, std::max<int64_t>(needs.prefetch, 1));
  return shares;
}

int64_t room_for_images(const MemoryNeeds& needs, const MemoryShares& shares) {
  const auto budget = static_cast<int64_t>(needs.share * static_cast<double>(needs.memory));
  return budget - shares.decoding - (shares.num_batches + 1) * needs.batch;
}

}  // namespace lockstep::loader
