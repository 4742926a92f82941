// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/read_rings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/coroutine.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/random.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/loader/pread_ring.h"
#include "lockstep/loader/uring_door.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/processor.h"

namespace lockstep::measure {
namespace {

using base::Blame;
using base::Error;
using base::text;
using MakeRing = std::unique_ptr<loader::ReadRing> (*)(int depth);

// A file that is there as long as this is, written to the disk: dirty pages could not be put out of the cache.
class RingFile {
 public:
  RingFile(const base::Path& folder, int64_t bytes) : path_(folder / text("lockstep-bench-reads-", ::getpid())) {
    handle_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    std::vector<char> piece(1 << 20);
    base::Random random(1);
    for (auto& byte : piece) byte = static_cast<char>(random.bits());  // no file system can pack it
    bool good = handle_ >= 0;
    for (int64_t at = 0; good && at < bytes; at += static_cast<int64_t>(piece.size())) {
      const auto part = static_cast<size_t>(std::min<int64_t>(bytes - at, static_cast<int64_t>(piece.size())));
      good = ::pwrite(handle_, piece.data(), part, at) == static_cast<ssize_t>(part);
    }
    if (good && ::fsync(handle_) == 0) return;
    const int why = errno;
    remove();
    throw Error(Blame::machine, text(path_.string(), ": ", std::strerror(why)),
                "give another --folder, or fewer --bytes");
  }
  ~RingFile() { remove(); }
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  int handle() const { return handle_; }
  void forget() const { ::posix_fadvise(handle_, 0, 0, POSIX_FADV_DONTNEED); }

 private:
  void remove() const {
    if (handle_ < 0) return;
    ::close(handle_);
    ::unlink(path_.c_str());
  }

  base::Path path_;
  int handle_ = -1;
};

struct ReadWork {
  int file = -1;
  int64_t size = 0;
  std::vector<int64_t> offsets;  // in the order of reading
  size_t next = 0;
  int64_t failed = 0;
};

// One of the readers that are under way: takes the next piece until there is none.
base::Detached read_pieces(loader::ReadRing& ring, ReadWork& work, std::span<std::byte> memory) {
  while (work.next < work.offsets.size()) {
    const int64_t offset = work.offsets[work.next++];
    const int64_t got = co_await ring.read(work.file, memory, offset);
    work.failed += got == work.size ? 0 : 1;
  }
}

struct RingTime {
  double seconds = 0;
  double cpu_seconds = 0;
};

RingTime time_ring(loader::ReadRing& ring, ReadWork work, std::vector<std::vector<std::byte>>& memory) {
  const double start = base::steady_seconds(), cpu = base::process_processor_seconds();
  for (auto& piece : memory) read_pieces(ring, work, std::span(piece).first(static_cast<size_t>(work.size)));
  while (ring.num_under_way() > 0) ring.run_some();
  const RingTime time{base::steady_seconds() - start, base::process_processor_seconds() - cpu};
  if (work.failed > 0)
    throw Error(Blame::machine, text(work.failed, " reads by ", ring.name(), " failed"), "try again");
  return time;
}

std::vector<int64_t> shuffled_offsets(const RingBench& bench, int64_t size) {
  std::vector<int64_t> offsets;
  for (int64_t at = 0; at + size <= bench.file_bytes; at += size) offsets.push_back(at);
  base::Random random(2);
  for (size_t i = offsets.size(); i > 1; --i) {
    std::swap(offsets[i - 1], offsets[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  }
  return offsets;
}

}  // namespace

RingFigures bench_rings(const RingBench& bench) {
  const int64_t largest = *std::max_element(bench.sizes.begin(), bench.sizes.end());
  const int64_t smallest = *std::min_element(bench.sizes.begin(), bench.sizes.end());
  if (smallest < 1 || largest > bench.file_bytes || bench.depth < 1 || bench.rounds < 1) {
    throw Error(Blame::user, "sizes are between one byte and the whole file; --depth and --rounds count from 1",
                "leave them out for the defaults");
  }
  RingFigures figures;
  std::vector<std::pair<std::string, MakeRing>> rings;
  if (loader::make_uring(bench.depth))
    rings.emplace_back("io_uring", &loader::make_uring);
  else
    figures.left_out.emplace_back("io_uring: the kernel, the container or this build does not have it");
  rings.emplace_back("pread", &loader::make_pread_ring);
  const RingFile file(bench.folder, bench.file_bytes);
  std::vector<std::vector<std::byte>> memory(static_cast<size_t>(bench.depth),
                                             std::vector<std::byte>(static_cast<size_t>(largest)));
  for (const int64_t size : bench.sizes) {
    const ReadWork work{.file = file.handle(), .size = size, .offsets = shuffled_offsets(bench, size)};
    for (const bool cold : {true, false}) {
      std::vector<std::vector<RingTime>> times(rings.size());
      for (int64_t round = 0; round < bench.rounds; ++round) {  // in turns
        for (size_t i = 0; i < rings.size(); ++i) {
          if (cold) file.forget();
          const auto ring = rings[i].second(bench.depth);
          times[i].push_back(time_ring(*ring, work, memory));
        }
      }
      for (size_t i = 0; i < rings.size(); ++i) {
        std::sort(times[i].begin(), times[i].end(),
                  [](const RingTime& a, const RingTime& b) { return a.seconds < b.seconds; });
        const RingTime& middle = times[i][times[i].size() / 2];
        figures.rows.push_back({rings[i].first, cold, size, static_cast<int64_t>(work.offsets.size()), middle.seconds,
                                middle.cpu_seconds});
      }
    }
  }
  return figures;
}

base::Json ring_rows(const RingBench& bench, const RingFigures& figures, const std::string& command) {
  base::Json rows = base::Json::array();
  for (const RingRow& from : figures.rows) {
    base::Json row = base::Json::object();
    row["what"] = text("reads of ", base::exact_bytes(from.size), ", ", from.cold ? "cold" : "warm", ", ", from.ring);
    row["ring"] = from.ring;
    row["cold"] = from.cold;
    row["size"] = from.size;
    row["reads"] = from.reads;
    row["depth"] = bench.depth;
    row["seconds"] = from.seconds;
    row["cpu_seconds"] = from.cpu_seconds;
    row["bytes_per_second"] = from.bytes_per_second();
    row["command"] = command;
    row["commit"] = base::build_commit();
    row["machine"] = text(site::read_processor().model, ", ", site::usable_cores(), " cores");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string ring_text(const RingFigures& figures) {
  base::Table table({{"pieces"},
                     {"cache"},
                     {"by"},
                     {"MB/s", base::Align::right},
                     {"reads/s", base::Align::right},
                     {"CPU us a read", base::Align::right}});
  for (const RingRow& row : figures.rows) {
    const auto reads = static_cast<double>(row.reads);
    table.add({base::exact_bytes(row.size), row.cold ? "cold" : "warm", row.ring,
               base::fixed(row.bytes_per_second() / 1e6, 0), base::fixed(reads / row.seconds, 0),
               base::fixed(1e6 * row.cpu_seconds / reads, 1)});
  }
  std::string shown = table.to_text();
  for (const auto& why : figures.left_out) shown += text("left out: ", why, "\n");
  return shown;
}

}  // namespace lockstep::measure
