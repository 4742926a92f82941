// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::shards {

// Tar files as shards are made of: docs/formats/shards.md.
constexpr int64_t kTarBlock = 512;
constexpr int64_t kTarRecord = 20 * kTarBlock;               // the length of a tar file is a multiple of this
constexpr int64_t kMaxMemberBytes = (int64_t{1} << 33) - 1;  // what eleven octal digits hold: below 8 GiB
constexpr size_t kMaxMemberName = 100;                       // all of it in the `name` field: wids reads no other
constexpr int64_t padded_to_block(int64_t size) {
  return (size + kTarBlock - 1) / kTarBlock * kTarBlock;
}

// The header block of a regular file; the same bytes for the same arguments.
// User error for a name that a reader of shards would misread (see member_name_fault), or 8 GiB and more.
std::array<char, kTarBlock> ustar_header(std::string_view name, int64_t size);

// Why the name cannot stand in a shard; empty when it can: KEY.EXT, printable ASCII without blanks, at most 100 bytes,
// relative, no "." or ".." or hidden part, no upper case in EXT.
std::string member_name_fault(std::string_view name);

struct TarMember {
  std::string name;
  int64_t header = 0;  // where its first header block begins (an extended header included)
  int64_t offset = 0;  // where its bytes begin
  int64_t size = 0;

  bool operator==(const TarMember&) const = default;
};

// The regular files of any tar file (USTAR, GNU and PAX long names) in memory, in order; folders are passed over.
// User error that names file and member: damaged or truncated headers, links and devices, names that are absolute,
// hold "..", or are no UTF-8.
class TarReader {
 public:
  TarReader(std::span<const std::byte> file, std::string source) : file_(file), source_(std::move(source)) {}
  std::optional<TarMember> next();

 private:
  struct Header;
  std::optional<Header> read_header();
  [[noreturn]] void fail(const std::string& what) const;
  std::string extended_name(const Header& header) const;
  TarMember checked(std::string name, int64_t begin, int64_t size) const;

  std::span<const std::byte> file_;
  std::string source_;
  int64_t at_ = 0;
};

}  // namespace lockstep::shards
