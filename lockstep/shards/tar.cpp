// SPDX-License-Identifier: Apache-2.0
#include "lockstep/shards/tar.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::shards {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr size_t kNameAt = 0, kModeAt = 100, kUidAt = 108, kGidAt = 116, kSizeAt = 124, kTimeAt = 136, kSumAt = 148,
                 kTypeAt = 156, kMagicAt = 257, kPrefixAt = 345;
constexpr int64_t kMaxExtended = 1 << 16;  // bytes of an extended header: names of this length are an attack

void put_octal(char* field, int digits, int64_t value) {
  for (int i = digits - 1; i >= 0; --i, value /= 8) field[i] = static_cast<char>('0' + value % 8);
}

unsigned sum_of(const char* block) {
  unsigned sum = 0;
  for (size_t i = 0; i < static_cast<size_t>(kTarBlock); ++i) {
    sum += i >= kSumAt && i < kSumAt + 8 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::optional<int64_t> octal(std::string_view field) {
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  int64_t value = 0;
  size_t digits = 0;
  for (; digits < field.size() && field[digits] >= '0' && field[digits] <= '7'; ++digits) {
    value = value * 8 + (field[digits] - '0');  // 12 digits at most: 36 bits
  }
  for (size_t i = digits; i < field.size(); ++i) {
    if (field[i] != ' ' && field[i] != '\0') return std::nullopt;
  }
  return digits > 0 ? std::optional(value) : std::nullopt;
}

std::string_view cut_at_nul(std::string_view field) {
  return field.substr(0, field.find('\0'));
}

std::string path_fault(std::string_view name) {
  if (name.empty()) return "it has no name";
  if (!base::is_utf8(name)) return "its name is no UTF-8";
  if (name.front() == '/') return "its name is absolute";
  for (const auto& part : base::split(name, '/')) {
    if (part == "..") return "its name holds \"..\"";
  }
  return "";
}

}  // namespace

std::string member_name_fault(std::string_view name) {
  if (const std::string fault = path_fault(name); !fault.empty()) return fault;
  if (name.size() > kMaxMemberName) return text("its name has more than ", kMaxMemberName, " bytes");
  for (const char c : name) {
    if (c <= ' ' || c > '~') return "its name holds a blank or something that is not ASCII";
  }
  for (const auto& part : base::split(name, '/')) {
    if (part.empty() || part.front() == '.') return "a part of its name is empty or hidden";
  }
  const std::string_view file = name.substr(name.rfind('/') + 1);
  const size_t dot = file.find('.');
  if (dot == std::string_view::npos || dot + 1 == file.size()) return "its name has no extension";
  const std::string_view extension = file.substr(dot + 1);
  if (std::any_of(extension.begin(), extension.end(), [](unsigned char c) { return std::isupper(c); })) {
    return "its extension has upper case letters";
  }
  return "";
}

std::array<char, kTarBlock> ustar_header(std::string_view name, int64_t size) {
  if (const std::string fault = member_name_fault(name); !fault.empty()) {
    throw Error(Blame::user, text(base::quote_json(name), " cannot stand in a shard: ", fault), "rename it");
  }
  if (size < 0 || size > kMaxMemberBytes) {
    throw Error(Blame::user, text(name, ": ", size, " bytes; a member of a shard is smaller than 8 GiB"),
                "cut it into smaller samples");
  }
  std::array<char, kTarBlock> block{};
  std::memcpy(block.data() + kNameAt, name.data(), name.size());
  std::memcpy(block.data() + kModeAt, "0000444", 7);
  put_octal(block.data() + kUidAt, 7, 0);
  put_octal(block.data() + kGidAt, 7, 0);
  put_octal(block.data() + kSizeAt, 11, size);
  put_octal(block.data() + kTimeAt, 11, 0);
  block[kTypeAt] = '0';
  std::memcpy(block.data() + kMagicAt, "ustar\00000", 8);
  put_octal(block.data() + kSumAt, 6, sum_of(block.data()));
  block[kSumAt + 7] = ' ';
  return block;
}

struct TarReader::Header {
  int64_t begin = 0;
  int64_t offset = 0;
  int64_t size = 0;
  char type = '0';
  std::string name = {};
};

void TarReader::fail(const std::string& what) const {
  throw Error(Blame::user, text(source_, ": at byte ", at_, ": ", what), "fetch the tar file again, or leave it out");
}

// The header at at_, which moves behind it and its content; nothing at the end of the archive.
std::optional<TarReader::Header> TarReader::read_header() {
  const auto length = static_cast<int64_t>(file_.size());
  if (at_ == length && at_ > 0) return std::nullopt;  // some writers leave out the two zero blocks
  if (length - at_ < kTarBlock) fail("the tar file is truncated");
  const char* block = reinterpret_cast<const char*>(file_.data()) + at_;
  if (std::all_of(block, block + kTarBlock, [](char c) { return c == 0; })) return std::nullopt;
  const auto field = [block](size_t at, size_t size) { return std::string_view(block + at, size); };
  if (octal(field(kSumAt, 8)) != sum_of(block)) fail("this is no tar header, or a damaged one");
  const auto size = octal(field(kSizeAt, 12));
  Header header{.begin = at_, .offset = at_ + kTarBlock, .type = block[kTypeAt]};
  header.name = cut_at_nul(field(kNameAt, 100));
  if (field(kMagicAt, 6) == std::string_view("ustar\0", 6)) {
    const std::string_view prefix = cut_at_nul(field(kPrefixAt, 155));
    if (!prefix.empty()) header.name = text(prefix, "/", header.name);
  }
  if (!size || *size > kMaxMemberBytes)
    fail(text("the size of ", base::quote_json(header.name), " is 8 GiB or more, or no number"));
  header.size = *size;
  if (padded_to_block(header.size) > length - header.offset)
    fail(text("the tar file ends within ", base::quote_json(header.name)));
  at_ = header.offset + padded_to_block(header.size);
  return header;
}

// Of a GNU long name ('L') or the "path" of a PAX header ('x'); empty when that says nothing of the name.
std::string TarReader::extended_name(const Header& header) const {
  if (header.size > kMaxExtended) fail("an extended header of more than 64 KiB");
  std::string_view content(reinterpret_cast<const char*>(file_.data()) + header.offset,
                           static_cast<size_t>(header.size));
  if (header.type == 'L') return std::string(cut_at_nul(content));
  std::string path;
  while (!content.empty()) {  // "LENGTH key=value\n", the length counting itself
    size_t length = 0, digits = 0;
    for (; digits < content.size() && digits < 6 && content[digits] >= '0' && content[digits] <= '9'; ++digits) {
      length = length * 10 + static_cast<size_t>(content[digits] - '0');
    }
    if (digits == 0 || length <= digits + 1 || length > content.size()) fail("a damaged extended header");
    const std::string_view record = content.substr(digits + 1, length - digits - 2);
    if (record.starts_with("path=")) path = record.substr(5);
    if (record.starts_with("size=") || record.starts_with("GNU.sparse"))
      fail("a sparse member, or one of 8 GiB or more");
    content.remove_prefix(length);
  }
  return path;
}

TarMember TarReader::checked(std::string name, int64_t begin, int64_t size) const {
  if (const std::string fault = path_fault(name); !fault.empty()) {
    fail(text("the member ", base::quote_json(name), " is refused: ", fault));
  }
  return {std::move(name), begin, at_ - padded_to_block(size), size};
}

std::optional<TarMember> TarReader::next() {
  std::string long_name;
  int64_t begin = -1;
  while (auto header = read_header()) {
    if (begin < 0) begin = header->begin;
    switch (header->type) {
      case 'L':
      case 'x':
        if (std::string name = extended_name(*header); !name.empty()) long_name = std::move(name);
        continue;
      case 'g':  // says nothing of a name
      case '5':
        long_name.clear();
        begin = -1;
        continue;
      case '0':
      case '\0':
      case '7':
        return checked(long_name.empty() ? std::move(header->name) : std::move(long_name), begin, header->size);
      default:
        fail(text("the member ", base::quote_json(header->name), " is a link, a device or sparse: refused"));
    }
  }
  if (begin >= 0) fail("the tar file ends behind an extended header");
  return std::nullopt;
}

}  // namespace lockstep::shards
