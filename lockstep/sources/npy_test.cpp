// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/npy.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::sources {
namespace {

std::string npy_file(const std::string& dictionary, const std::string& content) {
  using std::string_literals::operator""s;
  return "\x93NUMPY\1\0"s + static_cast<char>(dictionary.size()) + '\0' + dictionary + content;
}

std::span<const std::byte> npy_bytes(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

TEST(NpyTest, CutsAnArrayIntoSlices) {
  const std::string file = npy_file("{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }\n",
                                    std::string("\1\0\2\0\3\0\4\0\xFF\xFF\6\0", 12));
  const NpyHeader header = read_npy_header(npy_bytes(file), "x.npy");
  EXPECT_EQ(header.type, "i2");
  EXPECT_EQ(header.shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(header.slice_bytes(), 4);
  const std::string slice = npy_slice(npy_bytes(file), header, 2);
  const NpyHeader cut = read_npy_header(npy_bytes(slice), "slice");
  EXPECT_EQ(cut.shape, (std::vector<int64_t>{2}));
  EXPECT_EQ(cut.data_offset % 64, 0);
  EXPECT_EQ(npy_integer(npy_bytes(slice), cut, 0), -1);
  EXPECT_EQ(npy_integer(npy_bytes(slice), cut, 1), 6);
}

TEST(NpyTest, RefusesWhatIsNoPlainArray) {
  for (const char* dictionary :
       {"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '>i2', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<i2', 'fortran_order': True, 'shape': (1,), }",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (9,), }",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (-1,), }", "{'descr': '<i2', 'fortran_order': False}",
        "{'descr': '<i3', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", ""}) {
    const std::string file = npy_file(dictionary, "1234");
    EXPECT_THROW(read_npy_header(npy_bytes(file), "x"), base::Error) << dictionary;
  }
  EXPECT_THROW(read_npy_header(npy_bytes("PK"), "x"), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
