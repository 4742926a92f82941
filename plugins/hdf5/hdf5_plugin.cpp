// SPDX-License-Identifier: Apache-2.0
#include "plugins/hdf5/hdf5_plugin.h"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <string>
#include <vector>

struct lockstep_hdf5_file {
  hid_t id = H5I_INVALID_HID;
  std::list<std::string> names;  // a list: the arrays point to them
  std::vector<lockstep_hdf5_array> arrays;
  std::vector<lockstep_hdf5_other> others;
  mutable std::vector<hid_t> open;  // by array, from its first read on: what is unpacked stays with it. 0: not yet
  ~lockstep_hdf5_file() {
    for (const hid_t dataset : open) {
      if (dataset > 0) H5Dclose(dataset);
    }
    if (id >= 0) H5Fclose(id);
  }
};

namespace {

// Closes a handle of the library's; negative: there is none.
class Closing {
 public:
  Closing(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Closing() {
    if (id_ >= 0) close_(id_);
  }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  hid_t id() const { return id_; }
  bool is_there() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

struct NumberType {
  char name[3];
  hid_t id;  // little-endian, in memory
};

// Plain numbers of the file's type; an empty name for anything else.
NumberType number_type(hid_t type) {
  const NumberType known[] = {{"u1", H5T_STD_U8LE},  {"u2", H5T_STD_U16LE}, {"u4", H5T_STD_U32LE},
                              {"u8", H5T_STD_U64LE}, {"i1", H5T_STD_I8LE},  {"i2", H5T_STD_I16LE},
                              {"i4", H5T_STD_I32LE}, {"i8", H5T_STD_I64LE}, {"f4", H5T_IEEE_F32LE},
                              {"f8", H5T_IEEE_F64LE}};
  const H5T_class_t kind = H5Tget_class(type);
  const bool whole = kind == H5T_INTEGER;
  if (!whole && kind != H5T_FLOAT) return {};
  const char letter = !whole ? 'f' : H5Tget_sign(type) == H5T_SGN_NONE ? 'u' : 'i';
  for (const auto& number : known) {
    if (number.name[0] == letter && static_cast<size_t>(number.name[1] - '0') == H5Tget_size(type)) return number;
  }
  return {};
}

// Whether the numbers lie in this very file.
bool is_own(hid_t dataset) {
  const Closing layout(H5Dget_create_plist(dataset), H5Pclose);
  return layout.is_there() && H5Pget_external_count(layout.id()) <= 0 && H5Pget_layout(layout.id()) != H5D_VIRTUAL;
}

// The caller says what went wrong. The library keeps this setting for each thread, so it is made in every call.
void be_quiet() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

void find_missing_filter(hid_t dataset, lockstep_hdf5_array& array) {
  const Closing layout(H5Dget_create_plist(dataset), H5Pclose);
  const int count = layout.is_there() ? H5Pget_nfilters(layout.id()) : 0;
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0;
    size_t num_values = 0;
    char name[sizeof array.missing_filter] = {};
    const H5Z_filter_t filter =
        H5Pget_filter2(layout.id(), static_cast<unsigned>(i), &flags, &num_values, nullptr, sizeof name, name, &config);
    if (filter < 0 || H5Zfilter_avail(filter) > 0) continue;
    name[sizeof name - 1] = '\0';
    const std::string known = name[0] != '\0' ? std::string(name) : "number " + std::to_string(filter);
    std::memcpy(array.missing_filter, known.c_str(), known.size() + 1);
    return;
  }
}

const char* kind_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_COMPOUND:
      return "it holds records (complex numbers are such, too), not plain numbers";
    case H5T_STRING:
      return "it holds text, not numbers";
    case H5T_VLEN:
      return "it holds lists of varying length";
    default:
      return "it holds no whole numbers or floats of 1 to 8 bytes";
  }
}

// Why the dataset is no array of ours; null: it is one.
const char* fault_of(hid_t dataset, hid_t type, hid_t space) {
  if (dataset < 0 || type < 0 || space < 0) return "it cannot be opened";
  if (!is_own(dataset)) return "its numbers lie in another file";
  if (number_type(type).name[0] == '\0') return kind_of(type);
  const int axes = H5Sget_simple_extent_ndims(space);
  return axes < 1 ? "a single value" : axes > LOCKSTEP_HDF5_MAX_AXES ? "it has more than 8 axes" : nullptr;
}

void add_array(lockstep_hdf5_file& file, const char* name) {
  const Closing dataset(H5Dopen2(file.id, name, H5P_DEFAULT), H5Dclose);
  const Closing type(dataset.is_there() ? H5Dget_type(dataset.id()) : H5I_INVALID_HID, H5Tclose);
  const Closing space(dataset.is_there() ? H5Dget_space(dataset.id()) : H5I_INVALID_HID, H5Sclose);
  if (const char* fault = fault_of(dataset.id(), type.id(), space.id())) {
    file.others.push_back({file.names.emplace_back(name).c_str(), fault});
    return;
  }
  const NumberType number = number_type(type.id());
  const int axes = H5Sget_simple_extent_ndims(space.id());
  hsize_t sizes[LOCKSTEP_HDF5_MAX_AXES] = {};
  H5Sget_simple_extent_dims(space.id(), sizes, nullptr);
  lockstep_hdf5_array array{file.names.emplace_back(name).c_str(), {}, axes, {}, {}};
  find_missing_filter(dataset.id(), array);
  std::memcpy(array.type, number.name, sizeof array.type);
  for (int i = 0; i < axes; ++i) array.shape[i] = static_cast<int64_t>(sizes[i]);
  file.arrays.push_back(array);
}

// The library is C: no exception may pass through it.
herr_t visit(hid_t, const char* name, const H5O_info_t* info, void* data) noexcept {
  if (info->type == H5O_TYPE_DATASET) add_array(*static_cast<lockstep_hdf5_file*>(data), name);
  return 0;
}

lockstep_hdf5_file* open_file(const char* path) {
  be_quiet();
  auto file = std::make_unique<lockstep_hdf5_file>();
  file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file->id < 0 || H5Ovisit(file->id, H5_INDEX_NAME, H5_ITER_INC, visit, file.get()) < 0) return nullptr;
  return file.release();
}

// Whether the array lies in chunks; `chunk` is their shape. Leaves nothing open: of a dataset that is open already the
// library takes no other cache.
bool has_chunks(hid_t file, const lockstep_hdf5_array& array, hsize_t* chunk) {
  const Closing dataset(H5Dopen2(file, array.name, H5P_DEFAULT), H5Dclose);
  if (!dataset.is_there()) return false;
  const Closing layout(H5Dget_create_plist(dataset.id()), H5Pclose);
  return layout.is_there() && H5Pget_layout(layout.id()) == H5D_CHUNKED &&
         H5Pget_chunk(layout.id(), LOCKSTEP_HDF5_MAX_AXES, chunk) == array.axes;
}

// Chunks are unpacked whole. Those that were are kept: all of the array where it fits, two rows of chunks otherwise, so
// that who reads in order unpacks each once.
hid_t open_for_reading(hid_t file, const lockstep_hdf5_array& array) {
  constexpr size_t kKept = size_t{256} << 20, kMostKept = size_t{1} << 30, kMostSlots = 1 << 20;
  hsize_t chunk[LOCKSTEP_HDF5_MAX_AXES] = {};
  if (!has_chunks(file, array, chunk)) return H5Dopen2(file, array.name, H5P_DEFAULT);
  size_t row = static_cast<size_t>(array.type[1] - '0'), one = row * static_cast<size_t>(chunk[0]);
  for (int k = 1; k < array.axes; ++k) {
    row *= static_cast<size_t>(array.shape[k]);
    one *= static_cast<size_t>(chunk[k]);
  }
  const size_t whole = std::max(one, row * static_cast<size_t>(array.shape[0]));
  const size_t kept = std::min({whole, kMostKept, std::max(kKept, 2 * row * static_cast<size_t>(chunk[0]))});
  const size_t slots = std::min(kMostSlots, 100 * (kept / std::max<size_t>(one, 1) + 1)) + 1;
  const Closing access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  if (access.is_there()) H5Pset_chunk_cache(access.id(), slots, kept, H5D_CHUNK_CACHE_W0_DEFAULT);
  return H5Dopen2(file, array.name, access.is_there() ? access.id() : H5P_DEFAULT);
}

int read_rows(const lockstep_hdf5_file* file, int64_t i, int64_t row, int64_t count, int as_int64, void* to) {
  be_quiet();
  const lockstep_hdf5_array& array = file->arrays[static_cast<size_t>(i)];
  file->open.resize(file->arrays.size());
  hid_t& dataset = file->open[static_cast<size_t>(i)];
  if (dataset <= 0) dataset = open_for_reading(file->id, array);
  if (dataset < 0) return 1;
  const Closing space(H5Dget_space(dataset), H5Sclose), type(H5Dget_type(dataset), H5Tclose);
  hsize_t start[LOCKSTEP_HDF5_MAX_AXES] = {static_cast<hsize_t>(row)}, size[LOCKSTEP_HDF5_MAX_AXES] = {};
  for (int k = 0; k < array.axes; ++k) size[k] = static_cast<hsize_t>(array.shape[k]);
  size[0] = static_cast<hsize_t>(count);
  const Closing memory(H5Screate_simple(array.axes, size, nullptr), H5Sclose);
  const hid_t wanted = as_int64 ? H5T_STD_I64LE : number_type(type.id()).id;
  const bool good = space.is_there() && memory.is_there() &&
                    H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start, nullptr, size, nullptr) >= 0 &&
                    H5Dread(dataset, wanted, memory.id(), space.id(), H5P_DEFAULT, to) >= 0;
  return good ? 0 : 1;
}

void copy_text(const char* from, size_t size, lockstep_hdf5_attribute& to) {
  const size_t count = std::min(strnlen(from, size), sizeof to.text - 1);
  std::memcpy(to.text, from, count);
  to.text[count] = '\0';
  to.kind = 't';
}

// Text of fixed or varying length; one element.
void read_text(hid_t attribute, hid_t type, hid_t space, lockstep_hdf5_attribute& to) {
  if (H5Tis_variable_str(type) > 0) {
    char* words = nullptr;
    const Closing memory(H5Tcopy(H5T_C_S1), H5Tclose);
    H5Tset_size(memory.id(), H5T_VARIABLE);
    H5Tset_cset(memory.id(), H5Tget_cset(type));
    if (H5Aread(attribute, memory.id(), &words) < 0 || !words) return;
    copy_text(words, sizeof to.text, to);
    H5Dvlen_reclaim(memory.id(), space, H5P_DEFAULT, &words);
    return;
  }
  constexpr size_t kMostText = 1 << 16;
  const size_t size = H5Tget_size(type);
  if (size == 0 || size > kMostText) return;
  std::string words(size + 1, '\0');
  if (H5Aread(attribute, type, words.data()) >= 0) copy_text(words.data(), size, to);
}

void read_attribute(const lockstep_hdf5_file* file, const char* object, const char* name, lockstep_hdf5_attribute* to) {
  be_quiet();
  *to = {};
  const char* path = object[0] == '\0' ? "/" : object;
  if (H5Aexists_by_name(file->id, path, name, H5P_DEFAULT) <= 0) return;
  const Closing attribute(H5Aopen_by_name(file->id, path, name, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!attribute.is_there()) return;
  const Closing type(H5Aget_type(attribute.id()), H5Tclose), space(H5Aget_space(attribute.id()), H5Sclose);
  if (!type.is_there() || !space.is_there() || H5Sget_simple_extent_npoints(space.id()) != 1) return;
  const H5T_class_t kind = H5Tget_class(type.id());
  if (kind == H5T_STRING) return read_text(attribute.id(), type.id(), space.id(), *to);
  if (kind != H5T_INTEGER && kind != H5T_FLOAT) return;
  if (H5Aread(attribute.id(), H5T_NATIVE_DOUBLE, &to->number) >= 0) to->kind = 'n';
}

bool write_array(hid_t file, const lockstep_hdf5_bytes& array) {
  hsize_t sizes[LOCKSTEP_HDF5_MAX_AXES] = {};
  for (int i = 0; i < array.axes; ++i) sizes[i] = static_cast<hsize_t>(array.shape[i]);
  const Closing space(H5Screate_simple(array.axes, sizes, nullptr), H5Sclose);
  const Closing links(H5Pcreate(H5P_LINK_CREATE), H5Pclose), layout(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.id(), 1);
  H5Pset_chunk(layout.id(), array.axes, sizes);
  H5Pset_deflate(layout.id(), 6);
  H5Pset_obj_track_times(layout.id(), false);  // the same bytes whenever it is written
  const Closing dataset(H5Dcreate2(file, array.name, H5T_STD_U8LE, space.id(), links.id(), layout.id(), H5P_DEFAULT),
                        H5Dclose);
  return dataset.is_there() && H5Dwrite(dataset.id(), H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, array.bytes) >= 0;
}

// The group at a path, made where it is not there.
bool make_groups(hid_t file, const std::string& path) {
  for (size_t at = path.find('/'); true; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0) {
      const Closing options(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
      H5Pset_obj_track_times(options.id(), false);
      const Closing group(H5Gcreate2(file, part.c_str(), H5P_DEFAULT, options.id(), H5P_DEFAULT), H5Gclose);
      if (!group.is_there()) return false;
    }
    if (at == std::string::npos) return true;
  }
}

bool write_attribute(hid_t file, const lockstep_hdf5_named& named) {
  const bool is_root = named.object[0] == '\0';
  if (!is_root && !make_groups(file, named.object)) return false;
  const Closing object(H5Oopen(file, is_root ? "/" : named.object, H5P_DEFAULT), H5Oclose);
  const Closing space(H5Screate(H5S_SCALAR), H5Sclose);
  const bool is_text = named.value.kind == 't';
  const Closing type(is_text ? H5Tcopy(H5T_C_S1) : H5Tcopy(H5T_IEEE_F64LE), H5Tclose);
  if (is_text) H5Tset_size(type.id(), std::strlen(named.value.text) + 1);
  const Closing attribute(H5Acreate2(object.id(), named.name, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                          H5Aclose);
  const void* value = is_text ? static_cast<const void*>(named.value.text) : &named.value.number;
  return attribute.is_there() && H5Awrite(attribute.id(), is_text ? type.id() : H5T_NATIVE_DOUBLE, value) >= 0;
}

int write_file(const char* path, const lockstep_hdf5_bytes* arrays, int64_t num_arrays,
               const lockstep_hdf5_named* attributes, int64_t num_attributes) {
  be_quiet();
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return 1;
  bool good = true;
  for (int64_t i = 0; i < num_attributes && good; ++i) good = write_attribute(file, attributes[i]);
  for (int64_t i = 0; i < num_arrays && good; ++i) good = write_array(file, arrays[i]);
  return H5Fclose(file) >= 0 && good ? 0 : 1;
}

const lockstep_hdf5 kPlugin = {
    LOCKSTEP_HDF5_VERSION,
    open_file,
    [](const lockstep_hdf5_file* file) { return static_cast<int64_t>(file->arrays.size()); },
    [](const lockstep_hdf5_file* file, int64_t i) { return &file->arrays[static_cast<size_t>(i)]; },
    read_rows,
    [](lockstep_hdf5_file* file) {
      be_quiet();
      delete file;
    },
    [](const lockstep_hdf5_file* file) { return static_cast<int64_t>(file->others.size()); },
    [](const lockstep_hdf5_file* file, int64_t i) { return &file->others[static_cast<size_t>(i)]; },
    read_attribute,
    write_file};

}  // namespace

extern "C" __attribute__((visibility("default"))) const lockstep_hdf5* lockstep_hdf5_plugin(void) {
  return &kPlugin;
}
