// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/part_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::results {
namespace {

using base::text;

constexpr size_t kChecksum = 9;  // eight digits and a blank
constexpr std::string_view kPartExtension = ".part";

std::string checked(const std::string& record) {
  char digits[kChecksum + 1];
  std::snprintf(digits, sizeof digits, "%08x ", base::crc32c(record));
  return digits + record + "\n";
}

bool is_whole(std::string_view line) {
  if (line.size() <= kChecksum || line[kChecksum - 1] != ' ') return false;
  const std::string digits(line.substr(0, kChecksum - 1));
  char* end = nullptr;
  const auto told = static_cast<uint32_t>(std::strtoul(digits.c_str(), &end, 16));
  return *end == '\0' && base::crc32c(line.substr(kChecksum)) == told;
}

// Open files, a few at a time: parts of thousands of ranks are read one after the other.
class Reading {
 public:
  ~Reading() { close(); }
  void open(const base::Path& path) {
    if (path == path_) return;
    close();
    descriptor_ = base::open_plain(path, O_RDONLY);
    if (descriptor_ < 0) base::throw_errno(text("cannot read ", path.string()));
    path_ = path;
  }
  std::string_view read(int64_t offset, size_t size) {
    if (buffer_.size() < size) buffer_.resize(size);
    for (size_t done = 0; done < size;) {
      const ssize_t got = ::pread(descriptor_, buffer_.data() + done, size - done, offset + static_cast<off_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) base::throw_errno(text("cannot read ", path_.string()));
      done += static_cast<size_t>(got);
    }
    return {buffer_.data(), size};
  }

 private:
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  base::Path path_;
  int descriptor_ = -1;
  std::string buffer_;
};

base::Path part_path(const base::Path& folder, int64_t rank) {
  char name[32];
  std::snprintf(name, sizeof name, "rank-%05lld", static_cast<long long>(rank));
  return folder / (name + std::string(kPartExtension));
}

}  // namespace

PartWriter::PartWriter(const base::Path& folder, int64_t rank) : file_(part_path(folder, rank)) {
  file_.append("\n");  // the end of a line that a kill may have torn
}

void PartWriter::append(const std::vector<std::string>& records) {
  std::string lines;
  for (const auto& record : records) lines += checked(record);
  if (!lines.empty()) file_.append(lines);
}

std::vector<base::Path> part_files(const base::Path& folder) {
  std::vector<base::Path> files;
  for (const auto& path : base::list_folder(folder)) {
    if (path.extension() == kPartExtension) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

void RecordIndex::put(int64_t image, int64_t offset, size_t size) {
  places_[static_cast<size_t>(image)] = {static_cast<int32_t>(files_.size()) - 1, static_cast<int32_t>(size), offset};
}

int64_t RecordIndex::add_results(const base::Path& file, const Accept& accept) {
  files_.push_back(file);
  is_part_.push_back(0);
  int64_t others = 0;
  for_each_line(file, [&](int64_t offset, std::string_view line) {
    const auto head = read_head(line);
    if (!head) ++others;
    const int64_t image = head ? accept(*head) : -1;
    if (image >= 0) put(image, offset, line.size());
  });
  return others;
}

void RecordIndex::add_part(const base::Path& file, const Accept& accept) {
  files_.push_back(file);
  is_part_.push_back(1);
  for_each_line(file, [&](int64_t offset, std::string_view line) {
    if (!is_whole(line)) return;
    const std::string_view record = line.substr(kChecksum);
    const auto head = read_head(record);
    const int64_t image = head ? accept(*head) : -1;
    if (image >= 0) put(image, offset + static_cast<int64_t>(kChecksum), record.size());
  });
}

int64_t RecordIndex::done() const {
  return std::count_if(places_.begin(), places_.end(), [](const Place& place) { return place.file >= 0; });
}

int64_t RecordIndex::in_parts() const {
  return std::count_if(places_.begin(), places_.end(), [&](const Place& place) {
    return place.file >= 0 && is_part_[static_cast<size_t>(place.file)] != 0;
  });
}

void RecordIndex::for_each(const std::function<void(int64_t image, std::string_view record)>& each) const {
  Reading reading;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    if (place.file < 0) continue;
    reading.open(files_[static_cast<size_t>(place.file)]);
    each(static_cast<int64_t>(i), reading.read(place.offset, static_cast<size_t>(place.size)));
  }
}

}  // namespace lockstep::results
