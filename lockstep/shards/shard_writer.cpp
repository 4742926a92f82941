// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/shard_writer.h"

#include <unistd.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/jpeg_rows.h"
#include "lockstep/shards/tar.h"

namespace lockstep::shards {
namespace {

using base::text;

constexpr size_t kBuffer = 4 << 20;  // bytes given to the file system at once

}  // namespace

ShardWriter::ShardWriter(base::Path folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)), temporary_(folder_ / text(".", name_, ".tar.part")) {
  file_.emplace(temporary_, base::FileWriter::Mode::truncate);
  buffer_.reserve(kBuffer);
}

ShardWriter::~ShardWriter() {
  if (file_) ::unlink(temporary_.c_str());
}

// Where the bytes begin in the file.
int64_t ShardWriter::append(std::string_view bytes) {
  const int64_t at = written_ + static_cast<int64_t>(buffer_.size());
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  buffer_ += bytes;
  return at;
}

void ShardWriter::flush() {
  crc32c_ = base::crc32c(buffer_, crc32c_);
  file_->write(buffer_);
  written_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

void ShardWriter::pad_to(int64_t multiple) {
  const int64_t length = written_ + static_cast<int64_t>(buffer_.size());
  append(std::string(static_cast<size_t>((multiple - length % multiple) % multiple), '\0'));
}

void ShardWriter::add(const NewSample& sample, const std::vector<NewMember>& members) {
  base::ensure(!members.empty(), "a sample of one member at least");
  IndexedSample indexed{.key = sample.key, .label = sample.label, .content_hash = sample.content_hash};
  const auto image = std::find_if(members.begin(), members.end(),
                                  [](const NewMember& member) { return image::is_image_extension(member.extension); });
  image::JpegLayout layout;
  if (image != members.end()) {
    const auto bytes = std::as_bytes(std::span(image->bytes.data(), image->bytes.size()));
    const image::ImageInfo info = image::read_image_info(bytes);
    if (info.format == image::ImageFormat::jpeg) layout = image::read_jpeg_layout(bytes);
    indexed.image = IndexedImage{image - members.begin(), info, layout.progressive};
    indexed.row_offsets = layout.row_offsets;
  }
  std::vector<std::array<char, kTarBlock>> headers;
  headers.reserve(members.size());
  for (const auto& member : members) {  // before anything is written: a refused sample leaves no trace
    headers.push_back(ustar_header(text(sample.key, ".", member.extension), static_cast<int64_t>(member.bytes.size())));
  }
  index_.add_sample(indexed);
  for (size_t i = 0; i < members.size(); ++i) {
    const NewMember& member = members[i];
    append({headers[i].data(), headers[i].size()});
    const int64_t offset = append(member.bytes);
    pad_to(kTarBlock);
    const auto size = static_cast<int64_t>(member.bytes.size());
    index_.add_member({member.extension, offset, size, base::crc32c(member.bytes)});
    dali_ += text(i == 0 ? "" : " ", member.extension, " ", offset, " ", size, " ", sample.key, ".", member.extension);
  }
  dali_ += "\n";
}

ShardSummary ShardWriter::finish() {
  base::ensure(index_.size() > 0, "a shard of one sample at least");
  append(std::string(2 * kTarBlock, '\0'));
  pad_to(kTarRecord);
  flush();
  file_->sync();
  file_->close();
  const base::Path tar = folder_ / (name_ + ".tar");
  if (::rename(temporary_.c_str(), tar.c_str()) != 0) base::throw_errno(text("cannot rename to ", tar.string()));
  file_.reset();
  base::fsync_folder(folder_);
  base::write_file(folder_ / (name_ + ".idx"), text("v1.2 ", index_.size(), "\n", dali_));
  base::write_file(folder_ / (name_ + ".sxi"), index_.bytes(written_, crc32c_));
  return {name_, index_.size(), written_, crc32c_};
}

}  // namespace lockstep::shards
