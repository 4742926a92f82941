// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sources {

// The header of a .npy file (NumPy's format, versions 1 to 3), C order, little-endian, plain numbers.
struct NpyHeader {
  std::string type;  // "u1", "i4", "f4", ... without the byte order
  std::vector<int64_t> shape;
  int64_t item_bytes = 1;
  int64_t data_offset = 0;

  int64_t count() const { return shape.empty() ? 1 : shape[0]; }  // along the first axis
  int64_t slice_bytes() const;                                    // of one of these
};

// User error for anything else: objects (pickles), Fortran order, big-endian, a file shorter than its shape says.
NpyHeader read_npy_header(std::span<const std::byte> file, const std::string& source);

// A .npy file of one array in C order. The same bytes for the same content. `type` as in NpyHeader.
std::string npy_file(const std::string& type, std::span<const int64_t> shape, std::string_view bytes);

// Slice `i` along the first axis as a .npy file of its own. The same bytes for the same content.
std::string npy_slice(std::span<const std::byte> file, const NpyHeader& header, int64_t i);

// The number in a file of one element, also where it stands as text ('<U4': numpy.save of a string). User error for
// anything else.
double npy_number(std::string_view file, const std::string& source);

// Element `i` of an array of integers of any width.
int64_t npy_integer(std::span<const std::byte> file, const NpyHeader& header, int64_t i);

}  // namespace lockstep::sources
