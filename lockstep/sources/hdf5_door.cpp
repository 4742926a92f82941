// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/hdf5_door.h"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "plugins/hdf5/hdf5_plugin.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr int64_t kMaxSlice = int64_t{1} << 33;  // bytes: what a member of a shard may have

std::mutex g_library;  // as packaged it keeps its state in globals

const lockstep_hdf5& open_hdf5_plugin() {
  Dl_info here{};
  ::dladdr(reinterpret_cast<const void*>(&open_hdf5_plugin), &here);
  const auto file = base::Path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_hdf5.so";
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    throw Error(Blame::machine, text("cannot open the HDF5 plug-in: ", ::dlerror()),
                "install HDF5 (Debian: libhdf5-dev) and build again");
  }
  using Entry = const lockstep_hdf5* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, LOCKSTEP_HDF5_ENTRY));
  if (!entry || entry()->version != LOCKSTEP_HDF5_VERSION) {
    throw Error(Blame::machine, text(file.string(), " is no HDF5 plug-in of version ", LOCKSTEP_HDF5_VERSION),
                "build plugins/hdf5 of this version again");
  }
  return *entry();
}

const lockstep_hdf5& plugin() {
  static const lockstep_hdf5& opened = open_hdf5_plugin();
  return opened;
}

// Nothing for an array whose slices are larger than a member may be.
std::optional<Hdf5Array> described(const lockstep_hdf5_array& array, int64_t number) {
  Hdf5Array result{array.name, array.type, {}, array.type[1] - '0', number, array.missing_filter};
  int64_t bytes = result.item_bytes;
  for (int32_t i = 0; i < array.axes; ++i) {
    const int64_t size = array.shape[i];
    if (size < 0 || (i > 0 && size > 0 && bytes > kMaxSlice / size)) return std::nullopt;
    if (i > 0) bytes *= size;
    result.shape.push_back(size);
  }
  return result;
}

}  // namespace

struct Hdf5File::Handle {
  lockstep_hdf5_file* file;
  ~Handle() {
    const std::lock_guard lock(g_library);
    plugin().close(file);
  }
};

int64_t Hdf5Array::slice_bytes() const {
  int64_t bytes = item_bytes;
  for (size_t i = 1; i < shape.size(); ++i) bytes *= shape[i];
  return bytes;
}

Hdf5File::Hdf5File(const base::Path& path) : path_(path) {
  const lockstep_hdf5& hdf5 = plugin();
  const std::lock_guard lock(g_library);
  lockstep_hdf5_file* file = hdf5.open(path.c_str());
  if (!file) {
    throw Error(Blame::user, text(path.string(), ": no HDF5 file, or a damaged one"),
                text("h5ls -r ", base::shell_path(path.string())));
  }
  handle_.reset(new Handle{file});
  for (int64_t i = 0; i < hdf5.num_arrays(file); ++i) {
    if (auto array = described(*hdf5.array(file, i), i)) {
      arrays_.push_back(std::move(*array));
    } else {
      others_.push_back({hdf5.array(file, i)->name, "one of its rows is larger than a sample may be"});
    }
  }
  for (int64_t i = 0; i < hdf5.num_others(file); ++i) {
    others_.push_back({hdf5.other(file, i)->name, hdf5.other(file, i)->reason});
  }
  std::sort(arrays_.begin(), arrays_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
}

Hdf5File::~Hdf5File() = default;

void Hdf5File::read(const Hdf5Array& array, int64_t row, int64_t count, bool as_int64, void* to) const {
  const std::lock_guard lock(g_library);
  if (plugin().read(handle_->file, array.number, row, count, as_int64 ? 1 : 0, to) == 0) return;
  if (!array.missing_filter.empty()) {
    throw Error(Blame::user,
                text(path_.string(), ": ", array.name, " is packed by the filter ",
                     base::quote_json(array.missing_filter), ", which this libhdf5 has not"),
                "pack it again where that filter is: h5repack -f GZIP=1 OLD NEW, or h5py with compression=\"gzip\"");
  }
  throw Error(Blame::user, text(path_.string(), ": row ", row, " of ", array.name, " cannot be read"),
              "the file is damaged there: h5ls -r tells what it holds");
}

std::string Hdf5File::slice(const Hdf5Array& array, int64_t row) const {
  base::ensure(row >= 0 && row < array.count(), "a row of the array");
  std::string bytes(static_cast<size_t>(array.slice_bytes()), '\0');
  read(array, row, 1, false, bytes.data());
  return bytes;
}

std::vector<int64_t> Hdf5File::integers(const Hdf5Array& array) const {
  base::ensure(array.type[0] != 'f' && array.slice_bytes() == array.item_bytes, "a list of integers");
  std::vector<int64_t> all(static_cast<size_t>(array.count()));
  if (!all.empty()) read(array, 0, array.count(), true, all.data());
  return all;
}

namespace {

lockstep_hdf5_attribute attribute_of(const lockstep_hdf5_file* file, const std::string& object,
                                     const std::string& name) {
  const std::lock_guard lock(g_library);
  lockstep_hdf5_attribute value{};
  plugin().attribute(file, object.c_str(), name.c_str(), &value);
  return value;
}

}  // namespace

std::optional<double> Hdf5File::number(const std::string& object, const std::string& name) const {
  const auto value = attribute_of(handle_->file, object, name);
  return value.kind == 'n' ? std::optional(value.number) : std::nullopt;
}

std::optional<std::string> Hdf5File::words(const std::string& object, const std::string& name) const {
  const auto value = attribute_of(handle_->file, object, name);
  return value.kind == 't' ? std::optional<std::string>(value.text) : std::nullopt;
}

void write_hdf5(const base::Path& path, const std::vector<Hdf5Bytes>& arrays,
                const std::vector<Hdf5Attribute>& attributes) {
  std::vector<lockstep_hdf5_bytes> blocks;
  blocks.reserve(arrays.size());
  for (const Hdf5Bytes& array : arrays) {
    base::ensure(array.shape.size() <= LOCKSTEP_HDF5_MAX_AXES, "an array of few axes");
    lockstep_hdf5_bytes block{array.name.c_str(), static_cast<int32_t>(array.shape.size()), {}, array.bytes.data()};
    std::copy(array.shape.begin(), array.shape.end(), block.shape);
    blocks.push_back(block);
  }
  std::vector<lockstep_hdf5_named> named;
  named.reserve(attributes.size());
  for (const Hdf5Attribute& attribute : attributes) {
    lockstep_hdf5_named one{attribute.object.c_str(), attribute.name.c_str(), {}};
    one.value.kind = attribute.number ? 'n' : 't';
    one.value.number = attribute.number.value_or(0);
    base::ensure(attribute.words.size() < sizeof one.value.text, "a short text");
    attribute.words.copy(one.value.text, attribute.words.size());
    named.push_back(one);
  }
  const std::lock_guard lock(g_library);
  const int code = plugin().write(path.c_str(), blocks.data(), static_cast<int64_t>(blocks.size()), named.data(),
                                  static_cast<int64_t>(named.size()));
  if (code != 0)
    throw Error(Blame::machine, text(path.string(), ": the HDF5 file cannot be written"), "is the disk full?");
}

}  // namespace lockstep::sources
