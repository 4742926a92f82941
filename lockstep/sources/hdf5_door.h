// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/sources/file_tree.h"

namespace lockstep::sources {

// An array of an HDF5 file whose elements are plain numbers, by its path in the file: "train/images".
struct Hdf5Array {
  std::string name;
  std::string type;  // as .npy files spell it, without the byte order: "u1", "f4"
  std::vector<int64_t> shape;
  int64_t item_bytes = 1;
  int64_t number = 0;               // the plug-in's own
  std::string missing_filter = {};  // one that packed it and that this libhdf5 has not: its rows cannot be read

  int64_t count() const { return shape.empty() ? 1 : shape[0]; }  // along the first axis
  int64_t slice_bytes() const;
};

// An HDF5 file, read by libhdf5 (which is for files of people one trusts: it is no bulwark against hostile ones).
// Chunks and compression are as libhdf5 knows them. 256 MiB of unpacked chunks of an array (two rows of chunks where
// these are more, 1 GiB at most) are kept: a larger one in chunks of many rows is read well in order (prep
// --keep-order), not in a shuffled one. Calls from many threads wait for each other: libhdf5 is not made for several.
// User error for what is no HDF5 file or is damaged; machine error when there is no HDF5 plug-in.
class Hdf5File {
 public:
  explicit Hdf5File(const base::Path& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // In the order of their names. Arrays of other things, and those whose numbers lie in other files, are left out.
  const std::vector<Hdf5Array>& arrays() const { return arrays_; }
  // Those that are left out, and why.
  const std::vector<Refused>& others() const { return others_; }
  // Slice `row` along the first axis, little-endian, in C order.
  std::string slice(const Hdf5Array& array, int64_t row) const;
  // All of it, as integers. REQUIRES: an array of integers
  std::vector<int64_t> integers(const Hdf5Array& array) const;
  // An attribute of the group or array at `object` ("": the file): one number, also in an array of one, or one text.
  // Nothing where there is none, or it is something else.
  std::optional<double> number(const std::string& object, const std::string& name) const;
  std::optional<std::string> words(const std::string& object, const std::string& name) const;

 private:
  struct Handle;
  void read(const Hdf5Array& array, int64_t row, int64_t count, bool as_int64, void* to) const;

  base::Path path_;
  std::unique_ptr<Handle> handle_;
  std::vector<Hdf5Array> arrays_;
  std::vector<Refused> others_;
};

// What a written file holds: arrays of bytes, and attributes of groups ("": the file), a text each unless there is a
// number.
struct Hdf5Bytes {
  std::string name;  // its path: groups on the way are made
  std::vector<int64_t> shape;
  std::string bytes;
};
struct Hdf5Attribute {
  std::string object, name, words;
  std::optional<double> number = std::nullopt;
};
// The same bytes for the same content. Machine error when it cannot be written.
void write_hdf5(const base::Path& path, const std::vector<Hdf5Bytes>& arrays,
                const std::vector<Hdf5Attribute>& attributes);

}  // namespace lockstep::sources
