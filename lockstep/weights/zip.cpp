// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/zip.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::weights {
namespace {

// Record layouts: APPNOTE.TXT 6.3, section 4.3.
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kCentralBytes = 46;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kMaxComment = 65535;
constexpr uint64_t kMaxEntries = 1'000'000;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the value stands in the zip64 extra field

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> content, const std::string& source) : content_(content), source_(source) {}

  std::vector<ZipEntry> read() {
    find_directory();
    std::vector<ZipEntry> entries;
    std::unordered_set<std::string> names;
    uint64_t at = directory_;
    for (uint64_t i = 0; i < count_; ++i) {
      ZipEntry entry = read_central(at);
      if (!names.insert(entry.name).second)
        fail(base::text("the name ", base::quote_json(entry.name), " appears twice"));
      entries.push_back(std::move(entry));
    }
    check_overlap(entries);
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw base::Error(base::Blame::user, base::text(source_, ": not a readable zip file: ", what),
                      "copy or download the file again");
  }

  template <class Integer>
  Integer get(uint64_t at) const {
    if (at > content_.size() || sizeof(Integer) > content_.size() - at) fail("it is cut short");
    Integer value;
    std::memcpy(&value, content_.data() + at, sizeof value);
    return value;
  }

  std::span<const std::byte> range(uint64_t at, uint64_t size) const {
    if (at > content_.size() || size > content_.size() - at) fail("a record reaches beyond its end");
    return content_.subspan(at, size);
  }

  // The end record stands at the end, behind it only a comment.
  uint64_t find_end() const {
    const uint64_t size = content_.size();
    for (uint64_t back = kEndBytes; back <= std::min(size, kEndBytes + kMaxComment); ++back) {
      if (get<uint32_t>(size - back) == kEndSignature && get<uint16_t>(size - back + 20) == back - kEndBytes) {
        return size - back;
      }
    }
    fail("the directory at its end is missing");
  }

  void find_directory() {
    const uint64_t end = find_end();
    count_ = get<uint16_t>(end + 10);
    directory_ = get<uint32_t>(end + 16);
    if (end >= kLocator64Bytes && get<uint32_t>(end - kLocator64Bytes) == kLocator64Signature) {
      const auto end64 = get<uint64_t>(end - kLocator64Bytes + 8);
      range(end64, kEnd64Bytes);
      if (get<uint32_t>(end64) != kEnd64Signature) fail("its zip64 record is missing");
      count_ = get<uint64_t>(end64 + 32);
      directory_ = get<uint64_t>(end64 + 48);
    }
    if (count_ > kMaxEntries) fail(base::text("it announces ", count_, " entries"));
  }

  struct Sizes {
    uint64_t stored, size, offset;
  };

  // Values that do not fit into 32 bits follow in this order in the extra field with id 1.
  void read_zip64(std::span<const std::byte> extra, Sizes& sizes) const {
    uint64_t* const wanted[] = {&sizes.size, &sizes.stored, &sizes.offset};
    while (extra.size() >= 4) {
      uint16_t id = 0;
      uint16_t length = 0;
      std::memcpy(&id, extra.data(), sizeof id);
      std::memcpy(&length, extra.data() + 2, sizeof length);
      if (length > extra.size() - 4) fail("an extra field reaches beyond its end");
      std::span<const std::byte> field = extra.subspan(4, length);
      extra = extra.subspan(4 + static_cast<size_t>(length));
      if (id != 1) continue;
      for (uint64_t* value : wanted) {
        if (*value != kIn64) continue;
        if (field.size() < sizeof *value) fail("a zip64 field is cut short");
        std::memcpy(value, field.data(), sizeof *value);
        field = field.subspan(sizeof *value);
      }
      return;
    }
  }

  ZipEntry read_central(uint64_t& at) const {
    range(at, kCentralBytes);
    if (get<uint32_t>(at) != kCentralSignature) fail("its directory is damaged");
    const auto flags = get<uint16_t>(at + 8);
    const auto method = get<uint16_t>(at + 10);
    const uint64_t name_bytes = get<uint16_t>(at + 28);
    const uint64_t extra_bytes = get<uint16_t>(at + 30);
    const uint64_t comment_bytes = get<uint16_t>(at + 32);
    Sizes sizes{get<uint32_t>(at + 20), get<uint32_t>(at + 24), get<uint32_t>(at + 42)};
    const auto name = range(at + kCentralBytes, name_bytes);
    read_zip64(range(at + kCentralBytes + name_bytes, extra_bytes), sizes);
    at += kCentralBytes + name_bytes + extra_bytes + comment_bytes;

    ZipEntry entry{std::string(reinterpret_cast<const char*>(name.data()), name.size()), {}};
    if ((flags & 1) != 0) fail(base::text(base::quote_json(entry.name), " is encrypted"));
    if (method != 0 || sizes.stored != sizes.size) {
      fail(base::text(base::quote_json(entry.name), " is compressed; PyTorch stores its tensors plainly"));
    }
    range(sizes.offset, kLocalBytes);
    if (get<uint32_t>(sizes.offset) != kLocalSignature)
      fail(base::text(base::quote_json(entry.name), " is not where it should be"));
    const uint64_t skip = kLocalBytes + get<uint16_t>(sizes.offset + 26) + get<uint16_t>(sizes.offset + 28);
    entry.bytes = range(sizes.offset + skip, sizes.size);
    return entry;
  }

  void check_overlap(const std::vector<ZipEntry>& entries) const {
    std::vector<const ZipEntry*> order;
    for (const ZipEntry& entry : entries) {
      if (!entry.bytes.empty()) order.push_back(&entry);
    }
    std::sort(order.begin(), order.end(),
              [](const ZipEntry* a, const ZipEntry* b) { return a->bytes.data() < b->bytes.data(); });
    for (size_t i = 1; i < order.size(); ++i) {
      if (order[i - 1]->bytes.data() + order[i - 1]->bytes.size() > order[i]->bytes.data()) {
        fail(base::text(base::quote_json(order[i]->name), " overlaps ", base::quote_json(order[i - 1]->name)));
      }
    }
  }

  std::span<const std::byte> content_;
  const std::string& source_;
  uint64_t directory_ = 0;
  uint64_t count_ = 0;
};

}  // namespace

bool looks_like_zip(std::span<const std::byte> content) {
  return content.size() >= 4 && std::memcmp(content.data(), "PK\3\4", 4) == 0;
}

std::vector<ZipEntry> read_stored_zip(std::span<const std::byte> content, const std::string& source) {
  return ZipReader(content, source).read();
}

}  // namespace lockstep::weights
