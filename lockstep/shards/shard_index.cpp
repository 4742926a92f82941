// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/shard_index.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::shards {
namespace {

using base::Blame;
using base::Error;
using base::text;

static_assert(std::endian::native == std::endian::little, "the index is little-endian and used as it lies");

constexpr char kMagic[8] = {'L', 'S', 'X', 'I', '0', '0', '0', '1'};

struct HeaderRecord {
  char magic[8];
  uint64_t tar_bytes;
  uint64_t num_samples;
  uint64_t num_members;
  uint64_t num_rows;
  uint64_t strings_bytes;
  uint32_t tar_crc32c;
  uint32_t body_crc32c;    // of everything behind the header
  uint32_t header_crc32c;  // of the 56 bytes before
  uint32_t reserved;
};
static_assert(sizeof(HeaderRecord) == 64);
constexpr size_t kHeaderCovered = 56;

constexpr uint16_t kNoImage = 0xFFFF;
constexpr uint8_t kProgressive = 1;

struct SampleRecord {
  uint64_t content_hash;
  uint64_t first_row;
  uint32_t num_rows;
  uint32_t key_at;
  uint32_t first_member;
  int32_t label;
  uint32_t width;
  uint32_t height;
  uint16_t key_length;
  uint16_t num_members;
  uint16_t image;  // which member, kNoImage for none
  uint8_t format;  // of the image: image::ImageFormat
  uint8_t orientation;
  uint8_t flags;
  uint8_t reserved[15];
};
static_assert(sizeof(SampleRecord) == 64);

struct MemberRecord {
  uint64_t offset;
  uint64_t size;
  uint32_t crc32c;
  uint32_t extension_at;
  uint16_t extension_length;
  uint8_t reserved[6];
};
static_assert(sizeof(MemberRecord) == 32);

template <class Record>
Record record_at(const std::byte* table, int64_t i) {
  Record record;
  std::memcpy(&record, table + static_cast<size_t>(i) * sizeof(Record), sizeof(Record));
  return record;
}

template <class Record>
void append(std::string& table, const Record& record) {
  table.append(reinterpret_cast<const char*>(&record), sizeof record);
}

int64_t decode_bytes(const SampleRecord& sample) {
  return image::decode_bytes_per_pixel(static_cast<image::ImageFormat>(sample.format),
                                       (sample.flags & kProgressive) != 0, sample.orientation != 1);
}

constexpr uint64_t kMost = uint64_t{1} << 32;  // entries of a table: products with a record's size cannot overflow

uint64_t rows_bytes(uint64_t num_rows) {
  return (num_rows + 1) / 2 * 8;  // what follows is aligned again
}

}  // namespace

ShardIndex::ShardIndex(const base::Path& path) : file_(path), bytes_(file_->bytes()), source_(path.string()) {
  open();
}

ShardIndex::ShardIndex(std::span<const std::byte> bytes, std::string source)
    : bytes_(bytes), source_(std::move(source)) {
  open();
}

void ShardIndex::fail(const std::string& what) const {
  throw Error(
      Blame::user, text(source_, ": ", what),
      "copy the shard and its index again; an index is made again by preparing the shards' folder: lockstep prep");
}

void ShardIndex::open() {
  if (bytes_.size() < sizeof(HeaderRecord)) fail("the index is truncated");
  const auto header = record_at<HeaderRecord>(bytes_.data(), 0);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) fail("this is no index of a shard, or of another version");
  if (base::crc32c(bytes_.first(kHeaderCovered)) != header.header_crc32c) fail("the index is damaged (its header)");
  if (header.num_samples >= kMost || header.num_members >= kMost || header.num_rows >= kMost ||
      header.strings_bytes >= kMost || header.tar_bytes >= uint64_t{1} << 62) {
    fail("the index is damaged (absurd numbers)");
  }
  const uint64_t samples_bytes = header.num_samples * sizeof(SampleRecord);
  const uint64_t members_bytes = header.num_members * sizeof(MemberRecord);
  const uint64_t body = samples_bytes + members_bytes + rows_bytes(header.num_rows) + header.strings_bytes;
  if (bytes_.size() != sizeof(HeaderRecord) + body) fail("the index is truncated or longer than it says");
  if (base::crc32c(bytes_.subspan(sizeof(HeaderRecord))) != header.body_crc32c) fail("the index is damaged");
  num_samples_ = static_cast<int64_t>(header.num_samples);
  num_members_ = static_cast<int64_t>(header.num_members);
  num_rows_ = static_cast<int64_t>(header.num_rows);
  tar_bytes_ = static_cast<int64_t>(header.tar_bytes);
  tar_crc32c_ = header.tar_crc32c;
  samples_ = bytes_.data() + sizeof(HeaderRecord);
  members_ = samples_ + samples_bytes;
  rows_ = reinterpret_cast<const uint32_t*>(members_ + members_bytes);
  strings_ = {reinterpret_cast<const char*>(members_ + members_bytes + rows_bytes(header.num_rows)),
              static_cast<size_t>(header.strings_bytes)};
  for (int64_t i = 0; i < num_samples_; ++i) check_sample(i);
}

void ShardIndex::check_sample(int64_t i) {
  const auto sample = record_at<SampleRecord>(samples_, i);
  const bool inside = uint64_t{sample.key_at} + sample.key_length <= strings_.size() &&
                      int64_t{sample.first_member} + sample.num_members <= num_members_ &&
                      sample.first_row <= static_cast<uint64_t>(num_rows_) &&
                      sample.first_row + sample.num_rows <= static_cast<uint64_t>(num_rows_) &&
                      (sample.image == kNoImage || sample.image < sample.num_members);
  if (!inside || sample.label < kNoLabel) fail(text("sample ", i, " points outside of the index"));
  if (sample.image != kNoImage) {
    const bool sane = sample.width > 0 && sample.height > 0 && sample.format < image::kNumImageFormats &&
                      sample.orientation >= 1 && sample.orientation <= 8 &&
                      uint64_t{sample.width} * sample.height <= uint64_t{image::kMaxPixels};
    if (!sane) fail(text("sample ", i, " has an impossible image"));
    largest_image_ = std::max(largest_image_, int64_t{sample.width} * sample.height * decode_bytes(sample));
  }
  for (int64_t k = 0; k < sample.num_members; ++k) {
    const auto member = record_at<MemberRecord>(members_, sample.first_member + k);
    const auto limit = static_cast<uint64_t>(tar_bytes_);
    if (member.offset > limit || member.size > limit - member.offset ||
        uint64_t{member.extension_at} + member.extension_length > strings_.size()) {
      fail(text("member ", k, " of sample ", i, " lies outside of the shard"));
    }
    if (k == sample.image) largest_file_ = std::max(largest_file_, static_cast<int64_t>(member.size));
  }
  for (uint64_t row = 0; sample.image != kNoImage && row < sample.num_rows; ++row) {
    const uint32_t offset = rows_[sample.first_row + row];
    const bool rises = row == 0 || rows_[sample.first_row + row - 1] < offset;
    if (!rises || offset >= record_at<MemberRecord>(members_, sample.first_member + sample.image).size) {
      fail(text("sample ", i, " has rows outside of its image"));
    }
  }
}

IndexedSample ShardIndex::sample(int64_t i) const {
  const auto record = record_at<SampleRecord>(samples_, i);
  IndexedSample sample{.key = strings_.substr(record.key_at, record.key_length),
                       .label = record.label,
                       .content_hash = record.content_hash,
                       .num_members = record.num_members};
  if (record.image == kNoImage) return sample;
  const image::ImageInfo info{static_cast<image::ImageFormat>(record.format), record.width, record.height,
                              record.orientation};
  sample.image = IndexedImage{record.image, info, (record.flags & kProgressive) != 0};
  sample.row_offsets = {rows_ + record.first_row, record.num_rows};
  return sample;
}

IndexedMember ShardIndex::member(int64_t i, int64_t k) const {
  const auto sample = record_at<SampleRecord>(samples_, i);
  const auto record = record_at<MemberRecord>(members_, sample.first_member + k);
  return {strings_.substr(record.extension_at, record.extension_length), static_cast<int64_t>(record.offset),
          static_cast<int64_t>(record.size), record.crc32c};
}

std::optional<IndexedMember> ShardIndex::find(int64_t i, std::string_view extension) const {
  const int64_t num_members = record_at<SampleRecord>(samples_, i).num_members;
  for (int64_t k = 0; k < num_members; ++k) {
    if (const IndexedMember found = member(i, k); found.extension == extension) return found;
  }
  return std::nullopt;
}

uint32_t ShardIndexBuilder::string_at(std::string_view word) {
  base::ensure(strings_.size() + word.size() < kMost, "the names of a shard fit into 4 GiB");
  const auto at = static_cast<uint32_t>(strings_.size());
  strings_ += word;
  return at;
}

void ShardIndexBuilder::add_sample(const IndexedSample& sample) {
  base::ensure(sample.key.size() <= 0xFFFF, "a key of at most 65,535 bytes");
  SampleRecord record{};
  record.content_hash = sample.content_hash;
  record.first_row = rows_.size();
  record.num_rows = static_cast<uint32_t>(sample.row_offsets.size());
  record.key_at = string_at(sample.key);
  record.key_length = static_cast<uint16_t>(sample.key.size());
  record.first_member = static_cast<uint32_t>(num_members_);
  record.label = sample.label;
  record.image = kNoImage;
  if (sample.image) {
    record.image = static_cast<uint16_t>(sample.image->member);
    record.width = static_cast<uint32_t>(sample.image->info.width);
    record.height = static_cast<uint32_t>(sample.image->info.height);
    record.format = static_cast<uint8_t>(sample.image->info.format);
    record.orientation = static_cast<uint8_t>(sample.image->info.orientation);
    record.flags = sample.image->progressive ? kProgressive : 0;
  }
  rows_.insert(rows_.end(), sample.row_offsets.begin(), sample.row_offsets.end());
  append(samples_, record);
  ++num_samples_;
}

void ShardIndexBuilder::add_member(const IndexedMember& member) {
  base::ensure(num_samples_ > 0, "a sample before its members");
  auto known = extensions_.begin();
  while (known != extensions_.end() && known->first != member.extension) ++known;
  if (known == extensions_.end()) {
    known = extensions_.insert(known, {std::string(member.extension), string_at(member.extension)});
  }
  MemberRecord record{};
  record.offset = static_cast<uint64_t>(member.offset);
  record.size = static_cast<uint64_t>(member.size);
  record.crc32c = member.crc32c;
  record.extension_at = known->second;
  record.extension_length = static_cast<uint16_t>(member.extension.size());
  append(members_, record);
  ++num_members_;
  SampleRecord last;
  char* const at = samples_.data() + samples_.size() - sizeof last;
  std::memcpy(&last, at, sizeof last);
  base::ensure(last.num_members < kNoImage - 1, "a sample of fewer than 65,534 members");
  ++last.num_members;
  std::memcpy(at, &last, sizeof last);
}

std::string ShardIndexBuilder::bytes(int64_t tar_bytes, uint32_t tar_crc32c) const {
  std::string body = samples_ + members_;
  body.append(reinterpret_cast<const char*>(rows_.data()), rows_.size() * sizeof(uint32_t));
  body.resize(samples_.size() + members_.size() + rows_bytes(rows_.size()), '\0');
  body += strings_;
  HeaderRecord header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.tar_bytes = static_cast<uint64_t>(tar_bytes);
  header.num_samples = static_cast<uint64_t>(num_samples_);
  header.num_members = static_cast<uint64_t>(num_members_);
  header.num_rows = rows_.size();
  header.strings_bytes = strings_.size();
  header.tar_crc32c = tar_crc32c;
  header.body_crc32c = base::crc32c(body);
  header.header_crc32c = base::crc32c(std::as_bytes(std::span(&header, 1)).first(kHeaderCovered));
  std::string all;
  append(all, header);
  return all + body;
}

}  // namespace lockstep::shards
