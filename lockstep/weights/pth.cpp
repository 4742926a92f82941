// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/pth.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/weights/pickle.h"
#include "lockstep/weights/zip.h"

namespace lockstep::weights {
namespace {

using Kind = PickleValue::Kind;

constexpr std::string_view kOrderedDict = "collections.OrderedDict";
constexpr std::string_view kRebuildTensor = "torch._utils._rebuild_tensor_v2";
constexpr std::string_view kRebuildParameter = "torch._utils._rebuild_parameter";

struct StorageType {
  std::string_view name;
  Dtype dtype;
};
constexpr std::array<StorageType, 10> kStorageTypes = {{{"torch.FloatStorage", Dtype::F32},
                                                        {"torch.DoubleStorage", Dtype::F64},
                                                        {"torch.HalfStorage", Dtype::F16},
                                                        {"torch.BFloat16Storage", Dtype::BF16},
                                                        {"torch.LongStorage", Dtype::I64},
                                                        {"torch.IntStorage", Dtype::I32},
                                                        {"torch.ShortStorage", Dtype::I16},
                                                        {"torch.CharStorage", Dtype::I8},
                                                        {"torch.ByteStorage", Dtype::U8},
                                                        {"torch.BoolStorage", Dtype::BOOL}}};

constexpr std::array<std::string_view, 13> kAllowed = {
    kOrderedDict,        kRebuildTensor,      kRebuildParameter,       "torch.FloatStorage", "torch.DoubleStorage",
    "torch.HalfStorage", "torch.LongStorage", "torch.BFloat16Storage", "torch.IntStorage",   "torch.ShortStorage",
    "torch.CharStorage", "torch.ByteStorage", "torch.BoolStorage"};

// The plain format starts with three small pickles: this number, the protocol version, facts about the writer.
constexpr std::string_view kPlainMagic("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15);
constexpr int64_t kPlainVersion = 1001;
constexpr size_t kMaxPickleBytes = 64 << 20;
constexpr size_t kMaxPthDims = 16;
constexpr size_t kMaxTensors = 500'000;
constexpr size_t kMaxKey = 200;  // characters of a storage's key

struct StorageKey {
  std::string key;
  Dtype dtype;
  uint64_t elements;
};

using Storages = std::map<std::string, std::span<const std::byte>, std::less<>>;

class PthReader {
 public:
  PthReader(std::span<const std::byte> content, const std::string& source) : content_(content), source_(source) {}

  PthTensors read() {
    if (looks_like_zip(content_)) {
      read_zip();
    } else {
      read_plain();
    }
    collect();
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw base::Error(base::Blame::user, base::text(source_, ": refused: ", what),
                      "save the weights again as {name: tensor}, best as safetensors");
  }

  const PickleValue& at(uint32_t index) const { return pickle_.at(index); }

  void read_zip() {
    const std::vector<ZipEntry> entries = read_stored_zip(content_, source_);
    const ZipEntry* described = nullptr;
    for (const ZipEntry& entry : entries) {
      if (entry.name.ends_with("/data.pkl") || entry.name == "data.pkl") described = &entry;
    }
    if (!described) refuse("the archive holds no data.pkl, so torch.save did not write it");
    const std::string folder = described->name.substr(0, described->name.size() - std::string_view("data.pkl").size());
    for (const ZipEntry& entry : entries) {
      const std::string_view order(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
      if (entry.name == folder + "byteorder" && order != "little") refuse("its numbers are not little-endian");
      if (entry.name.starts_with(folder + "data/")) storages_[entry.name.substr(folder.size() + 5)] = entry.bytes;
    }
    pickle_ = read_one(described->bytes);
  }

  Pickle read_one(std::span<const std::byte> bytes) const {
    return read_pickle(bytes.subspan(0, std::min(bytes.size(), kMaxPickleBytes)), kAllowed, source_);
  }

  // magic, version, writer, the object, the keys of the storages; then each storage: its length and its bytes.
  void read_plain() {
    std::span<const std::byte> rest = content_.subspan(kPlainMagic.size());
    const auto next = [&] {
      Pickle pickle = read_one(rest);
      rest = rest.subspan(pickle.bytes_read);
      return pickle;
    };
    const Pickle version = next();
    if (version.at(version.root).integer != kPlainVersion) refuse("an unknown version of the format");
    check_writer(next());
    pickle_ = next();
    const Pickle keys = next();
    const std::map<std::string, StorageKey> known = storage_keys();
    for (const uint32_t index : keys.at(keys.root).items) {
      const auto found = known.find(keys.at(index).text);
      if (found == known.end()) refuse("a storage that no tensor describes");
      uint64_t elements = 0;
      if (rest.size() < sizeof elements) refuse("the file is cut short");
      std::memcpy(&elements, rest.data(), sizeof elements);
      rest = rest.subspan(sizeof elements);
      const uint64_t size = dtype_bytes(found->second.dtype);
      if (elements > rest.size() / size) refuse("the file is cut short");
      storages_[found->first] = rest.subspan(0, elements * size);
      rest = rest.subspan(elements * size);
    }
  }

  void check_writer(const Pickle& writer) const {
    const std::vector<uint32_t>& members = writer.at(writer.root).items;
    for (size_t i = 0; i + 1 < members.size(); i += 2) {
      if (writer.at(members[i]).text == "little_endian" && writer.at(members[i + 1]).integer != 1) {
        refuse("its numbers are not little-endian");
      }
    }
  }

  std::map<std::string, StorageKey> storage_keys() const {
    std::map<std::string, StorageKey> keys;
    for (const PickleValue& value : pickle_.values) {
      if (value.kind != Kind::persistent) continue;
      StorageKey key = storage_key(value);
      keys.insert_or_assign(key.key, key);
    }
    return keys;
  }

  // ("storage", torch.FloatStorage, key, device, elements[, view])
  StorageKey storage_key(const PickleValue& value) const {
    if (value.kind != Kind::persistent) refuse("a tensor without a storage");
    const PickleValue& id = at(value.items[0]);
    const bool shaped = id.kind == Kind::tuple && (id.items.size() == 5 || id.items.size() == 6);
    if (!shaped || at(id.items[0]).text != "storage" || at(id.items[2]).kind != Kind::string ||
        at(id.items[2]).text.size() > kMaxKey || at(id.items[4]).kind != Kind::integer || at(id.items[4]).integer < 0) {
      refuse("a reference that is no storage");
    }
    if (id.items.size() == 6 && at(id.items[5]).kind != Kind::none) refuse("a storage that is a view of another");
    const auto type = std::find_if(kStorageTypes.begin(), kStorageTypes.end(),
                                   [&](const StorageType& row) { return row.name == at(id.items[1]).text; });
    if (type == kStorageTypes.end()) refuse("a storage of an unknown type");
    return {at(id.items[2]).text, type->dtype, static_cast<uint64_t>(at(id.items[4]).integer)};
  }

  bool is_call(const PickleValue& value, std::string_view name) const {
    return value.kind == Kind::call && at(value.items[0]).text == name;
  }

  // Key and value indices of a dictionary, plain or ordered; empty for anything else.
  std::span<const uint32_t> members(const PickleValue& value) const {
    if (value.kind == Kind::dict) return value.items;
    if (is_call(value, kOrderedDict)) return std::span(value.items).subspan(2);
    return {};
  }

  const PickleValue* tensor_call(const PickleValue& value) const {
    if (is_call(value, kRebuildTensor)) return &value;
    if (!is_call(value, kRebuildParameter)) return nullptr;
    const std::vector<uint32_t>& arguments = at(value.items[1]).items;
    if (arguments.empty() || !is_call(at(arguments[0]), kRebuildTensor)) refuse("a parameter without a tensor");
    return &at(arguments[0]);
  }

  void collect() {
    std::span<const uint32_t> chosen = members(at(pickle_.root));
    for (const char* inner : {"state_dict", "model", "model_state_dict"}) {
      for (size_t i = 0; i + 1 < chosen.size(); i += 2) {
        const auto below = members(at(chosen[i + 1]));
        if (at(chosen[i]).kind != Kind::string || at(chosen[i]).text != inner || below.empty()) continue;
        chosen = below;
        break;
      }
    }
    std::unordered_set<std::string> names;
    for (size_t i = 0; i + 1 < chosen.size(); i += 2) {
      const PickleValue& key = at(chosen[i]);
      const PickleValue* call = tensor_call(at(chosen[i + 1]));
      if (!call) continue;  // an epoch number, a learning rate
      if (key.kind != Kind::string || !base::is_utf8(key.text)) refuse("a tensor whose name is no text");
      if (!names.insert(key.text).second) refuse(base::text("the name ", base::quote_json(key.text), " appears twice"));
      if (names.size() > kMaxTensors) refuse("too many tensors");
      add_tensor(key.text, at(call->items[1]).items);
    }
    if (result_.tensors.empty()) refuse("there are no named tensors in it");
  }

  std::vector<int64_t> sizes(uint32_t index, const std::string& name) const {
    std::vector<int64_t> values;
    if (at(index).items.size() > kMaxPthDims)
      refuse(base::text("tensor ", base::quote_json(name), " has too many dimensions"));
    for (const uint32_t item : at(index).items) {
      if (at(item).kind != Kind::integer || at(item).integer < 0)
        refuse(base::text("tensor ", base::quote_json(name), " has no proper shape"));
      values.push_back(at(item).integer);
    }
    return values;
  }

  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)
  void add_tensor(const std::string& name, std::span<const uint32_t> arguments) {
    const auto bad = [&](const char* why) { refuse(base::text("tensor ", base::quote_json(name), " ", why)); };
    if (arguments.size() < 4 || at(arguments[1]).kind != Kind::integer || at(arguments[1]).integer < 0) {
      bad("is described wrongly");
    }
    const StorageKey key = storage_key(at(arguments[0]));
    const auto storage = storages_.find(key.key);
    if (storage == storages_.end()) bad("has no bytes in the file");
    const uint64_t element = dtype_bytes(key.dtype);
    const uint64_t available = storage->second.size() / element;
    if (key.elements > available) bad("claims a larger storage than the file has");
    const auto offset = static_cast<uint64_t>(at(arguments[1]).integer);
    const std::vector<int64_t> shape = sizes(arguments[2], name);
    const std::vector<int64_t> strides = sizes(arguments[3], name);
    if (shape.size() != strides.size()) bad("has no proper shape");
    const auto bytes = tensor_bytes(key.dtype, shape);
    if (!bytes || *bytes > storage->second.size()) bad("is larger than its storage");
    if (!inside(shape, strides, offset, available)) bad("reaches beyond its storage");
    TensorView view{name, key.dtype, shape, {}};
    if (contiguous(shape, strides)) {
      view.bytes = storage->second.subspan(*bytes == 0 ? 0 : offset * element, *bytes);
    } else {
      view.bytes = gather(storage->second.subspan(offset * element), shape, strides, element);
    }
    result_.tensors.push_back(std::move(view));
  }

  static bool inside(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, uint64_t offset,
                     uint64_t available) {
    uint64_t last = offset;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 0) return true;
      uint64_t reach = 0;
      if (__builtin_mul_overflow(static_cast<uint64_t>(shape[i] - 1), static_cast<uint64_t>(strides[i]), &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        return false;
      }
    }
    return last < available;
  }

  static bool contiguous(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
    int64_t expected = 1;
    bool dense = true;
    for (size_t i = shape.size(); i > 0; --i) {
      if (shape[i - 1] == 0) return true;
      if (shape[i - 1] != 1 && strides[i - 1] != expected) dense = false;
      expected *= shape[i - 1];
    }
    return dense;
  }

  std::span<const std::byte> gather(std::span<const std::byte> storage, const std::vector<int64_t>& shape,
                                    const std::vector<int64_t>& strides, uint64_t element) {
    uint64_t total = element;
    for (const int64_t dim : shape) total *= static_cast<uint64_t>(dim);
    copied_ += total;
    if (copied_ > content_.size()) refuse("its tensors overlap beyond measure");
    std::vector<std::byte>& copy = result_.copies.emplace_back(total);
    std::vector<int64_t> index(shape.size(), 0);
    uint64_t from = 0;
    for (uint64_t to = 0; to < total; to += element) {
      std::memcpy(copy.data() + to, storage.data() + from * element, element);
      for (size_t dim = shape.size(); dim > 0; --dim) {  // the next index, last dimension fastest
        from += static_cast<uint64_t>(strides[dim - 1]);
        if (++index[dim - 1] < shape[dim - 1]) break;
        from -= static_cast<uint64_t>(strides[dim - 1]) * static_cast<uint64_t>(shape[dim - 1]);
        index[dim - 1] = 0;
      }
    }
    return copy;
  }

  std::span<const std::byte> content_;
  const std::string& source_;
  Pickle pickle_;
  Storages storages_;
  PthTensors result_;
  uint64_t copied_ = 0;
};

}  // namespace

bool looks_like_pth(std::span<const std::byte> content) {
  return looks_like_zip(content) || (content.size() >= kPlainMagic.size() &&
                                     std::memcmp(content.data(), kPlainMagic.data(), kPlainMagic.size()) == 0);
}

PthTensors parse_pth(std::span<const std::byte> content, const std::string& source) {
  if (!looks_like_pth(content)) {
    throw base::Error(base::Blame::user, base::text(source, ": not a PyTorch checkpoint"),
                      "save it with torch.save of PyTorch 1.6 or newer, or as safetensors");
  }
  return PthReader(content, source).read();
}

}  // namespace lockstep::weights
