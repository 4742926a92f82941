// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::weights {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are little-endian");

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // as the reference implementation
constexpr size_t kMaxDims = 64;
constexpr uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";

struct DtypeRow {
  std::string_view name;
  uint64_t bytes;
};
constexpr std::array<DtypeRow, 15> kDtypes = {{{"BOOL", 1},
                                               {"U8", 1},
                                               {"I8", 1},
                                               {"F8_E5M2", 1},
                                               {"F8_E4M3", 1},
                                               {"I16", 2},
                                               {"U16", 2},
                                               {"F16", 2},
                                               {"BF16", 2},
                                               {"I32", 4},
                                               {"U32", 4},
                                               {"F32", 4},
                                               {"F64", 8},
                                               {"I64", 8},
                                               {"U64", 8}}};

struct Entry {
  std::string name;
  std::optional<Dtype> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::pair<uint64_t, uint64_t>> offsets;
};

// Reads the header's narrow grammar without building a document: a hostile header costs no more than its own size.
class HeaderParser {
 public:
  HeaderParser(std::string_view header, const std::string& source) : header_(header), source_(source) {}

  void parse() {
    if (!base::is_utf8(header_)) fail("the header is not valid UTF-8");
    if (peek() != '{') fail("the header does not start with '{'");
    read_object([&](std::string key) {
      if (!names_.insert(key).second) fail(base::text("the name ", base::quote_json(key), " appears twice"));
      if (key == kMetadataKey) {
        read_metadata();
      } else {
        entries.push_back(read_entry(std::move(key)));
      }
    });
    skip_blank();
    if (at_ != header_.size()) fail("there is text behind the header's end");
  }

  std::vector<Entry> entries;
  TensorMetadata metadata;

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw base::Error(base::Blame::user,
                      base::text(source_, ": not a valid safetensors file: ", what, " (header byte ", at_, ")"),
                      "copy or download the file again");
  }

  char peek() const { return at_ < header_.size() ? header_[at_] : '\0'; }

  void skip_blank() {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  void expect(char wanted) {
    skip_blank();
    if (peek() != wanted) fail(base::text("'", wanted, "' is expected"));
    ++at_;
  }

  // True when another item follows; false after the closing bracket.
  bool next_item(char close, bool first) {
    skip_blank();
    if (peek() != close) {
      if (!first) expect(',');
      return true;  // a comma before the bracket fails where the item is read
    }
    ++at_;
    return false;
  }

  template <class Member>
  void read_object(const Member& read_member) {
    expect('{');
    for (bool first = true; next_item('}', first); first = false) {
      std::string key = read_string();
      expect(':');
      read_member(std::move(key));
    }
  }

  std::string read_string() {
    skip_blank();
    const size_t start = at_;
    if (peek() != '"') fail("a string is expected");
    ++at_;
    bool plain = true;
    while (at_ < header_.size() && header_[at_] != '"') {
      if (static_cast<uint8_t>(header_[at_]) < 0x20) fail("a raw control character in a string");
      if (header_[at_] == '\\') {
        plain = false;
        ++at_;
      }
      ++at_;
    }
    if (at_ >= header_.size()) fail("a string that never ends");
    ++at_;
    const std::string_view token = header_.substr(start, at_ - start);
    if (plain) return std::string(token.substr(1, token.size() - 2));
    return base::parse_json(token, source_, {.max_bytes = kMaxHeaderBytes, .max_depth = 1, .comments = false})
        .as_string();
  }

  uint64_t read_number() {
    skip_blank();
    const char* const begin = header_.data() + at_;
    const char* const end = header_.data() + header_.size();
    uint64_t value = 0;
    const auto [stop, error] = std::from_chars(begin, end, value);
    const bool leading_zero = stop - begin > 1 && *begin == '0';
    if (error != std::errc() || leading_zero || value > INT64_MAX) fail("a whole number below 2^63 is expected");
    at_ += static_cast<size_t>(stop - begin);
    return value;
  }

  std::vector<uint64_t> read_numbers(size_t most) {
    std::vector<uint64_t> numbers;
    expect('[');
    for (bool first = true; next_item(']', first); first = false) {
      if (numbers.size() == most) fail(base::text("more than ", most, " numbers in a list"));
      numbers.push_back(read_number());
    }
    return numbers;
  }

  void read_metadata() {
    read_object([&](std::string key) {
      std::string value = read_string();
      if (!metadata.emplace(key, std::move(value)).second)
        fail(base::text("metadata ", base::quote_json(key), " appears twice"));
    });
  }

  Entry read_entry(std::string name) {
    Entry entry{std::move(name), {}, {}, {}};
    read_object([&](const std::string& key) {
      if (key == "dtype" && !entry.dtype) {
        const std::string dtype = read_string();
        entry.dtype = find_dtype(dtype);
        if (!entry.dtype)
          fail(base::text("tensor ", base::quote_json(entry.name), " has the unknown type ", base::quote_json(dtype)));
      } else if (key == "shape" && !entry.shape) {
        const std::vector<uint64_t> dims = read_numbers(kMaxDims);
        entry.shape.emplace(dims.begin(), dims.end());
      } else if (key == "data_offsets" && !entry.offsets) {
        const std::vector<uint64_t> offsets = read_numbers(2);
        if (offsets.size() != 2) fail("data_offsets needs two numbers");
        entry.offsets = {offsets[0], offsets[1]};
      } else {
        fail(base::text("unexpected key ", base::quote_json(key), " in tensor ", base::quote_json(entry.name)));
      }
    });
    if (!entry.dtype || !entry.shape || !entry.offsets) {
      fail(base::text("tensor ", base::quote_json(entry.name), " lacks dtype, shape or data_offsets"));
    }
    return entry;
  }

  std::string_view header_;
  const std::string& source_;
  size_t at_ = 0;
  std::unordered_set<std::string> names_;
};

std::string shape_text(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += base::text(i > 0 ? "," : "", shape[i]);
  return out + "]";
}

// Entries sorted by offset must tile `data` exactly and agree with their shapes.
std::vector<TensorView> lay_out(std::vector<Entry> entries, std::span<const std::byte> data,
                                const std::string& source) {
  const auto fail = [&](const std::string& what) {
    throw base::Error(base::Blame::user, base::text(source, ": not a valid safetensors file: ", what),
                      "copy or download the file again");
  };
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  std::vector<TensorView> tensors;
  uint64_t end_of_last = 0;
  for (Entry& entry : entries) {
    const auto [begin, end] = *entry.offsets;
    const std::string tensor = base::text("tensor ", base::quote_json(entry.name));
    if (begin != end_of_last) {
      fail(base::text(tensor, begin < end_of_last ? " overlaps the one before it" : " leaves a hole before it",
                      " (bytes ", begin, " to ", end, ", expected to begin at ", end_of_last, ")"));
    }
    const std::optional<uint64_t> bytes = tensor_bytes(*entry.dtype, *entry.shape);
    if (end < begin || !bytes || *bytes != end - begin) {
      fail(base::text(tensor, " has ", end < begin ? 0 : end - begin, " bytes, which is not ", dtype_name(*entry.dtype),
                      " ", shape_text(*entry.shape)));
    }
    if (end > data.size())
      fail(base::text(tensor, " ends at byte ", end, " of ", data.size(), ": the file is cut short"));
    tensors.push_back({std::move(entry.name), *entry.dtype, std::move(*entry.shape), data.subspan(begin, end - begin)});
    end_of_last = end;
  }
  if (end_of_last != data.size()) fail(base::text(data.size() - end_of_last, " bytes behind the last tensor"));
  return tensors;
}

std::string header_of(std::span<const TensorView* const> tensors, const TensorMetadata& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    header += base::text(base::quote_json(kMetadataKey), ":{");
    for (const auto& [key, value] : metadata) {
      header += base::text(header.back() == '{' ? "" : ",", base::quote_json(key), ":", base::quote_json(value));
    }
    header += '}';
  }
  uint64_t offset = 0;
  for (const TensorView* tensor : tensors) {
    header += base::text(header.size() > 1 ? "," : "", base::quote_json(tensor->name), R"(:{"dtype":")",
                         dtype_name(tensor->dtype), R"(","shape":)", shape_text(tensor->shape), R"(,"data_offsets":[)",
                         offset, ",", offset + tensor->bytes.size(), "]}");
    offset += tensor->bytes.size();
  }
  header += '}';
  header.append((kLengthBytes - header.size() % kLengthBytes) % kLengthBytes, ' ');  // aligns the data
  return header;
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].name;
}

std::optional<Dtype> find_dtype(std::string_view name) {
  for (size_t i = 0; i < kDtypes.size(); ++i) {
    if (kDtypes[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

uint64_t dtype_bytes(Dtype dtype) {
  return kDtypes[static_cast<size_t>(dtype)].bytes;
}

std::optional<uint64_t> tensor_bytes(Dtype dtype, std::span<const int64_t> shape) {
  uint64_t total = dtype_bytes(dtype);
  for (const int64_t dim : shape) {
    if (dim < 0 || __builtin_mul_overflow(total, static_cast<uint64_t>(dim), &total)) return std::nullopt;
  }
  return total;
}

const TensorView* Safetensors::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Safetensors parse_safetensors(std::span<const std::byte> content, const std::string& source) {
  uint64_t length = 0;
  if (content.size() >= kLengthBytes) std::memcpy(&length, content.data(), kLengthBytes);
  if (content.size() < kLengthBytes || length > content.size() - kLengthBytes || length > kMaxHeaderBytes) {
    throw base::Error(
        base::Blame::user,
        base::text(source, ": not a safetensors file (", content.size(), " bytes, header of ", length, " announced)"),
        "is this the right file, and complete?");
  }
  HeaderParser parser({reinterpret_cast<const char*>(content.data()) + kLengthBytes, static_cast<size_t>(length)},
                      source);
  parser.parse();
  return {lay_out(std::move(parser.entries), content.subspan(kLengthBytes + length), source),
          std::move(parser.metadata)};
}

SafetensorsFile::SafetensorsFile(const base::Path& path)
    : file_(path), parsed_(parse_safetensors(file_.bytes(), path.string())) {}

uint64_t SafetensorsPieces::num_bytes() const {
  uint64_t total = head.size();
  for (const auto piece : data) total += piece.size();
  return total;
}

SafetensorsPieces safetensors_pieces(std::span<const TensorView> tensors, const TensorMetadata& metadata) {
  std::vector<const TensorView*> order;
  std::unordered_set<std::string_view> names;
  for (const TensorView& tensor : tensors) {
    base::ensure(tensor.name != kMetadataKey && base::is_utf8(tensor.name), "a tensor has a proper name");
    base::ensure(tensor_bytes(tensor.dtype, tensor.shape) == tensor.bytes.size(), "a tensor's bytes match its shape");
    base::ensure(names.insert(tensor.name).second, "tensor names are distinct");
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return a->dtype != b->dtype ? a->dtype > b->dtype : a->name < b->name;
  });
  const std::string header = header_of(order, metadata);
  base::ensure(header.size() <= kMaxHeaderBytes, "a safetensors header stays below 100 MB");
  const uint64_t length = header.size();
  SafetensorsPieces pieces{std::string(kLengthBytes, '\0') + header, {}};
  std::memcpy(pieces.head.data(), &length, kLengthBytes);
  for (const TensorView* tensor : order) pieces.data.push_back(tensor->bytes);
  return pieces;
}

void write_safetensors(const base::Path& path, std::span<const TensorView> tensors, const TensorMetadata& metadata) {
  const SafetensorsPieces pieces = safetensors_pieces(tensors, metadata);
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(pieces.head.data(), pieces.head.size()))};
  parts.insert(parts.end(), pieces.data.begin(), pieces.data.end());
  base::write_file(path, parts);
}

}  // namespace lockstep::weights
