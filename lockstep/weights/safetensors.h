// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::weights {

// The safetensors format: 8 bytes little-endian header length, a JSON header, the data.

// Element types, spelt as in the file. In ascending order of the reference implementation, which the writer follows.
enum class Dtype { BOOL, U8, I8, F8_E5M2, F8_E4M3, I16, U16, F16, BF16, I32, U32, F32, F64, I64, U64 };

std::string_view dtype_name(Dtype dtype);
std::optional<Dtype> find_dtype(std::string_view name);
uint64_t dtype_bytes(Dtype dtype);  // of one element

// The bytes of `shape` elements; nothing for a negative dimension or when it does not fit into 64 bits.
std::optional<uint64_t> tensor_bytes(Dtype dtype, std::span<const int64_t> shape);

// A tensor as it lies in memory, contiguous and little-endian. Does not own its bytes.
struct TensorView {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

using TensorMetadata = std::map<std::string, std::string>;

struct Safetensors {
  std::vector<TensorView> tensors;  // in the order of their bytes
  TensorMetadata metadata;          // the header's "__metadata__"

  const TensorView* find(std::string_view name) const;  // null when absent
};

// Reads `content`, whose views point into it; `source` names it in errors. Strict: a header above 100 MB, a duplicate
// name, an unknown type, a hole, an overlap, bytes left over or a size that differs from type x shape is a user error.
Safetensors parse_safetensors(std::span<const std::byte> content, const std::string& source);

// A memory-mapped file: opening it costs the header only, pages come when they are touched.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const base::Path& path);
  const std::vector<TensorView>& tensors() const { return parsed_.tensors; }
  const TensorMetadata& metadata() const { return parsed_.metadata; }
  const TensorView* find(std::string_view name) const { return parsed_.find(name); }

 private:
  base::MappedFile file_;
  Safetensors parsed_;
};

// A file as the pieces that make it up, for writers of their own: `head` (length and header), then `data` in order,
// which are the tensors' own bytes, not copies. REQUIRES as write_safetensors.
struct SafetensorsPieces {
  std::string head;
  std::vector<std::span<const std::byte>> data;

  uint64_t num_bytes() const;
};
SafetensorsPieces safetensors_pieces(std::span<const TensorView> tensors, const TensorMetadata& metadata = {});

// Atomic (see write_file). The bytes depend on the content only, not on the order of `tensors`.
// REQUIRES: distinct names, none "__metadata__"; bytes.size() == tensor_bytes(dtype, shape).
void write_safetensors(const base::Path& path, std::span<const TensorView> tensors,
                       const TensorMetadata& metadata = {});

}  // namespace lockstep::weights
