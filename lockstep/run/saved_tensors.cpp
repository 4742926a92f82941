// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/saved_tensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/run/part_file.h"

namespace lockstep::run {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;
using base::text;
using weights::TensorView;

std::vector<int64_t> numbers(const Json& array) {
  std::vector<int64_t> all;
  for (const auto& item : array.items()) all.push_back(item.as_int());
  return all;
}

// Nothing where a size is negative, or the product is beyond all memory.
std::optional<int64_t> product(const std::vector<int64_t>& shape) {
  int64_t all = 1;
  for (const int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(all, size, &all)) return std::nullopt;
  }
  return all;
}

// Whether each index has an element of its own and none is left over. A state.json that says otherwise, with checksums
// that are right, would have us read beyond the tensor.
bool is_without_gaps(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  if (shape.size() != strides.size()) return false;
  std::vector<size_t> dims;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 0) return true;
    if (shape[dim] != 1) dims.push_back(dim);
  }
  std::sort(dims.begin(), dims.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const size_t dim : dims) {
    if (strides[dim] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

bool is_row_major(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t dim = shape.size(); dim-- > 0;) {
    if (shape[dim] != 1 && strides[dim] != expected) return false;
    expected *= shape[dim];
  }
  return true;
}

// From the order of the memory into that of the indices, the last dim fastest.
void put_in_order(const std::vector<std::byte>& from, const CutTensor& cut, std::span<std::byte> into) {
  const size_t element = into.empty() ? 0 : into.size() / static_cast<size_t>(product(cut.shape).value_or(1));
  std::vector<int64_t> index(cut.shape.size(), 0);
  for (size_t to = 0; to < into.size(); to += element) {
    int64_t position = 0;
    for (size_t dim = 0; dim < index.size(); ++dim) position += index[dim] * cut.strides[dim];
    std::memcpy(into.data() + to, from.data() + static_cast<size_t>(position) * element, element);
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < cut.shape[dim]) break;
      index[dim] = 0;
    }
  }
}

// "optimizer/momentum.head.weight@64" -> its tensor and 64.
std::pair<std::string, int64_t> parse_partition_name(const std::string& name, const Path& file) {
  const size_t at = name.rfind('@');
  int64_t first = -1;
  if (at != std::string::npos) std::from_chars(name.data() + at + 1, name.data() + name.size(), first);
  if (first >= 0) return {name.substr(0, at), first};
  throw Error(Blame::machine, text(file.string(), ": '", name, "' is not the name of a partition"),
              "the file is not one of ours");
}

}  // namespace

struct SavedTensors::Files {
  struct Partition {
    int64_t first = 0;
    const TensorView* view = nullptr;

    int64_t count() const { return view->shape.empty() ? 1 : view->shape[0]; }
  };
  struct Whole {
    const TensorView* view = nullptr;  // not cut
    CutTensor cut = {};
    std::vector<Partition> partitions = {};  // in order
  };
  std::deque<weights::SafetensorsFile> open;
  std::vector<Whole> wholes;  // as entries_
};

std::string cut_name(std::string_view file, std::string_view tensor) {
  return text(file, "/", tensor);
}

std::string partition_name(const std::string& cut, int64_t first) {
  return text(cut, "@", first);
}

void describe_cut(Json& state, const std::vector<CutTensor>& cut, const std::vector<std::string>& parts) {
  Json all = Json::object();
  for (const auto& tensor : cut) {
    Json row = Json::object();
    row["shape"] = Json::array_of(tensor.shape);
    row["strides"] = Json::array_of(tensor.strides);
    all[tensor.name] = std::move(row);
  }
  state["cut"] = std::move(all);
  state["parts"] = Json::array_of(parts);
}

SavedTensors::SavedTensors(const Path& checkpoint, std::string_view file) : files_(std::make_unique<Files>()) {
  const auto& whole = files_->open.emplace_back(checkpoint / text(file, ".safetensors"));
  for (const auto& view : whole.tensors()) {
    entries_.push_back({view.name, view.dtype, view.shape});
    files_->wholes.push_back({.view = &view});
  }
  const Json state = base::read_json(checkpoint / "state.json", {.max_bytes = size_t{64} << 20});
  if (state.contains("cut")) find_partitions(checkpoint, file, state);
}

SavedTensors::~SavedTensors() = default;
SavedTensors::SavedTensors(SavedTensors&&) noexcept = default;

void SavedTensors::find_partitions(const Path& checkpoint, std::string_view file, const Json& state) {
  const std::string wanted = cut_name(file, "");
  std::map<std::string, std::vector<Files::Partition>> found;
  for (const auto& part : state.at("parts").items()) {
    if (const std::string& name = part.as_string(); !is_part_name(name)) {
      throw Error(Blame::machine, text(part.where(), ": ", base::quote_json(name), " is no file of this checkpoint"),
                  "the file is not one of ours");
    }
    const Path path = checkpoint / part.as_string();
    for (const auto& view : files_->open.emplace_back(path).tensors()) {
      if (!view.name.starts_with(wanted)) continue;
      const auto [name, first] = parse_partition_name(view.name, path);
      found[name].push_back({first, &view});
    }
  }
  for (const auto& member : state.at("cut").members()) {
    if (!member.key.starts_with(wanted)) continue;
    Files::Whole whole{.cut = {member.key, numbers(member.value.at("shape")), numbers(member.value.at("strides"))},
                       .partitions = std::move(found[member.key])};
    std::sort(whole.partitions.begin(), whole.partitions.end(),
              [](const Files::Partition& a, const Files::Partition& b) { return a.first < b.first; });
    int64_t end = 0;
    const std::optional<int64_t> elements = product(whole.cut.shape);
    bool fits = !whole.partitions.empty() && elements && is_without_gaps(whole.cut.shape, whole.cut.strides);
    for (const auto& partition : whole.partitions) {
      fits = fits && partition.first == end && partition.view->dtype == whole.partitions[0].view->dtype;
      end += partition.count();
    }
    if (!fits || end != *elements) {
      throw Error(Blame::machine,
                  text(checkpoint.string(), ": the partitions of '", member.key, "' do not make up the whole of it"),
                  "remove this checkpoint: the one before it will be found");
    }
    entries_.push_back({member.key.substr(wanted.size()), whole.partitions[0].view->dtype, whole.cut.shape});
    files_->wholes.push_back(std::move(whole));
  }
}

void SavedTensors::read(size_t index, std::span<std::byte> into) const {
  const auto& whole = files_->wholes.at(index);
  if (whole.view) {
    base::ensure(into.size() == whole.view->bytes.size(), "a tensor is read into its size");
    if (!into.empty()) std::memcpy(into.data(), whole.view->bytes.data(), into.size());
    return;
  }
  const bool in_order = is_row_major(whole.cut.shape, whole.cut.strides);
  std::vector<std::byte> memory(in_order ? 0 : into.size());
  const std::span<std::byte> target = in_order ? into : std::span(memory);
  size_t at = 0;
  for (const auto& partition : whole.partitions) {
    const auto bytes = partition.view->bytes;
    base::ensure(at + bytes.size() <= target.size(), "a tensor is read into its size");
    if (!bytes.empty()) std::memcpy(target.data() + at, bytes.data(), bytes.size());
    at += bytes.size();
  }
  base::ensure(at == into.size(), "a tensor is read into its size");
  if (!in_order) put_in_order(memory, whole.cut, into);
}

}  // namespace lockstep::run
