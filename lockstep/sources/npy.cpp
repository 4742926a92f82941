// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr int64_t kMaxElements = int64_t{1} << 48;
constexpr size_t kAlign = 64;

// The value behind 'key': in the header's dictionary; empty when it is not there.
std::string_view entry_of(std::string_view dictionary, std::string_view key) {
  const size_t at = dictionary.find(text("'", key, "'"));
  if (at == std::string_view::npos) return {};
  const size_t colon = dictionary.find(':', at);
  return colon == std::string_view::npos ? std::string_view() : base::trim(dictionary.substr(colon + 1));
}

constexpr const char* kNpyFix = "save it with numpy.save as a plain array of numbers";

[[noreturn]] void fail_npy(const std::string& source, const std::string& what, const char* fix = kNpyFix) {
  throw Error(Blame::user, text(source, ": ", what), fix);
}

struct NpyDictionary {
  std::string_view text;
  size_t data_offset;
};

NpyDictionary dictionary_of(std::string_view bytes, const std::string& source) {
  if (bytes.size() < 12 || !bytes.starts_with(kNpyMagic)) fail_npy(source, "this is no .npy file");
  const auto byte = [&](size_t at) { return static_cast<size_t>(static_cast<unsigned char>(bytes[at])); };
  const bool is_first = bytes[6] == 1;
  const size_t begin = is_first ? 10 : 12;
  const size_t length = is_first ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > 1 << 16 || begin + length > bytes.size()) fail_npy(source, "the header is damaged");
  return {bytes.substr(begin, length), begin + length};
}

}  // namespace

int64_t NpyHeader::slice_bytes() const {
  int64_t bytes = item_bytes;
  for (size_t i = 1; i < shape.size(); ++i) bytes *= shape[i];
  return bytes;
}

NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& source) {
  const auto fail = [&](const std::string& what) -> void { fail_npy(source, what); };
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  const auto [dictionary, data_offset] = dictionary_of(bytes, source);
  const std::string_view type = entry_of(dictionary, "descr"), order = entry_of(dictionary, "fortran_order");
  std::string_view shape = entry_of(dictionary, "shape");
  if (type.size() < 5 || type[0] != '\'' || !std::strchr("<|=", type[1]) || !std::strchr("uifb", type[2])) {
    const bool is_swapped = type.size() > 2 && type[1] == '>' && std::strchr("uif", type[2]);
    fail_npy(source, "not an array of little-endian numbers",
             is_swapped ? "numpy.save(FILE, a.astype(a.dtype.newbyteorder('<')))" : kNpyFix);
  }
  if (!order.starts_with("False"))
    fail_npy(source, "its order is Fortran's", "numpy.save(FILE, numpy.ascontiguousarray(a))");
  NpyHeader header;
  header.type = type.substr(2, type.find('\'', 1) - 2);
  header.item_bytes = header.type.size() == 2 ? header.type[1] - '0' : 0;
  if (header.item_bytes != 1 && header.item_bytes != 2 && header.item_bytes != 4 && header.item_bytes != 8)
    fail("not an array of plain numbers");
  if (shape.empty() || shape[0] != '(') fail("the header has no shape");
  shape = shape.substr(1, shape.find(')') - 1);
  int64_t elements = 1;
  for (const auto& part : base::split(shape, ',')) {
    const std::string_view digits = base::trim(part);
    if (digits.empty()) continue;
    int64_t size = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    if (code != std::errc() || end != digits.data() + digits.size() || size < 0 ||
        (size > 0 && elements > kMaxElements / size))
      fail("the shape is damaged");
    elements *= size;
    header.shape.push_back(size);
  }
  header.data_offset = static_cast<int64_t>(data_offset);
  if (elements * header.item_bytes > static_cast<int64_t>(bytes.size()) - header.data_offset)
    fail("the file is shorter than its shape says");
  return header;
}

std::string npy_file(const std::string& type, std::span<const int64_t> shape, std::string_view bytes) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  std::string dictionary =
      text("{'descr': '", type.ends_with('1') ? "|" : "<", type, "', 'fortran_order': False, 'shape': (",
           base::join(sizes, ", "), sizes.size() == 1 ? ",)" : ")", ", }");
  const size_t unpadded = kNpyMagic.size() + 4 + dictionary.size() + 1;
  dictionary += std::string((kAlign - unpadded % kAlign) % kAlign, ' ') + "\n";
  std::string file(kNpyMagic);
  file += '\1';
  file += '\0';
  file += static_cast<char>(dictionary.size() & 0xFF);
  file += static_cast<char>(dictionary.size() >> 8);
  file += dictionary;
  file += bytes;
  return file;
}

std::string npy_slice(std::span<const std::byte> file, const NpyHeader& header, int64_t i) {
  const auto bytes = static_cast<size_t>(header.slice_bytes());
  const char* at = reinterpret_cast<const char*>(file.data()) + header.data_offset + i * header.slice_bytes();
  return npy_file(header.type, std::span(header.shape).subspan(std::min<size_t>(header.shape.size(), 1)), {at, bytes});
}

double npy_number(std::string_view file, const std::string& source) {
  const auto [dictionary, data_offset] = dictionary_of(file, source);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(file.data(), file.size()));
  const std::string_view type = entry_of(dictionary, "descr");
  if (type.starts_with("'<U") || type.starts_with("'|U")) {  // four bytes a letter, zeros behind the last
    std::string letters;
    for (size_t at = data_offset; at + 4 <= file.size() && file[at] != '\0'; at += 4) letters += file[at];
    double number = 0;
    const auto [end, code] = std::from_chars(letters.data(), letters.data() + letters.size(), number);
    if (code == std::errc() && end == letters.data() + letters.size()) return number;
    fail_npy(source, text(base::quote_json(letters), " is no number"));
  }
  const NpyHeader header = read_npy_header(bytes, source);
  if (header.slice_bytes() * header.count() != header.item_bytes) fail_npy(source, "more than one number");
  if (header.type == "f8") {
    double number = 0;
    std::memcpy(&number, file.data() + data_offset, sizeof number);
    return number;
  }
  if (header.type == "f4") {
    float number = 0;
    std::memcpy(&number, file.data() + data_offset, sizeof number);
    return number;
  }
  if (header.type[0] == 'f') fail_npy(source, "a number of half precision");
  return static_cast<double>(npy_integer(bytes, header, 0));
}

int64_t npy_integer(std::span<const std::byte> file, const NpyHeader& header, int64_t i) {
  const std::byte* at = file.data() + header.data_offset + i * header.item_bytes;
  uint64_t value = 0;
  std::memcpy(&value, at, static_cast<size_t>(header.item_bytes));
  const int unused = 64 - 8 * static_cast<int>(header.item_bytes);
  if (header.type[0] == 'i') return static_cast<int64_t>(value << unused) >> unused;
  return static_cast<int64_t>(value);
}

}  // namespace lockstep::sources
