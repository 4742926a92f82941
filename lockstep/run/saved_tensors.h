// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::run {

// A tensor of a checkpoint that lies in partitions in several files (docs/formats/checkpoint.md, format 2): a partition
// is a run of elements in the order of the memory that `strides` describe.
struct CutTensor {
  std::string name;  // "<file>/<tensor>": "optimizer/momentum.head.weight"
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // REQUIRES: without gaps
};
std::string cut_name(std::string_view file, std::string_view tensor);
// The name of a partition in its file; `first` is its first element.
std::string partition_name(const std::string& cut, int64_t first);

// What state.json says of them. `parts` are the names of the files with the partitions.
void describe_cut(base::Json& state, const std::vector<CutTensor>& cut, const std::vector<std::string>& parts);

// The tensors of one file of a checkpoint, "weights", "optimizer" or "ema", all of them whole, however many ranks and
// nodes wrote them. The files stay mapped as long as this lives.
class SavedTensors {
 public:
  // Machine error when partitions are missing or do not fit together.
  SavedTensors(const base::Path& checkpoint, std::string_view file);
  ~SavedTensors();
  SavedTensors(SavedTensors&&) noexcept;

  struct Entry {
    std::string name;
    weights::Dtype dtype = weights::Dtype::F32;
    std::vector<int64_t> shape;
  };
  const std::vector<Entry>& entries() const { return entries_; }
  // The bytes of entries()[index], contiguous. REQUIRES: `into` has its size.
  void read(size_t index, std::span<std::byte> into) const;

 private:
  struct Files;
  void find_partitions(const base::Path& checkpoint, std::string_view file, const base::Json& state);

  std::unique_ptr<Files> files_;
  std::vector<Entry> entries_;
};

}  // namespace lockstep::run
