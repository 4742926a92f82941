// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;

class ArraySourceTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) const {
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  static std::string npy(const std::string& type, const std::string& shape, const std::string& content) {
    using std::string_literals::operator""s;
    const std::string dictionary = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
    return "\x93NUMPY\1\0"s + static_cast<char>(dictionary.size()) + '\0' + dictionary + content;
  }
  static image::Image image_at(const Source& source, int64_t i) {
    const auto members = source.load(i);
    EXPECT_EQ(members[0].extension, "png");
    return image::decode_image(std::as_bytes(std::span(members[0].bytes.data(), members[0].bytes.size())));
  }
  SourceOptions here() const { return {.path = folder_.path()}; }
  base::TemporaryFolder folder_;
};

TEST_F(ArraySourceTest, TurnsBytesOfNumpyIntoImages) {
  put("x_train.npy", npy("|u1", "(2, 1, 2, 3)", "abcdefghijkl"));
  put("y_train.npy", npy("<i8", "(2,)", std::string("\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16)));
  put("x_test.npy", npy("|u1", "(1, 2, 2)", "1234"));
  ASSERT_TRUE(looks_like_npy(here()));
  const auto source = open_npy(here());
  EXPECT_THAT(source->classes(), ElementsAre("0", "1"));
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"x_train.npy#0", 1, Part::train, 6},
                                             SourceSample{"x_train.npy#1", 0, Part::train, 6},
                                             SourceSample{"x_test.npy#0", shards::kNoLabel, Part::test, 4}));
  EXPECT_THAT(image_at(*source, 1).pixels, ElementsAre('g', 'h', 'i', 'j', 'k', 'l'));
  EXPECT_EQ(image_at(*source, 2).height, 2);
}

TEST_F(ArraySourceTest, SaysWhatLabelsMustBeAndHowToMakeThemSo) {
  put("x.npy", npy("|u1", "(2, 1, 2)", "abcd"));
  const auto complaint = [&](const std::string& labels) {
    put("y.npy", labels);
    try {
      open_npy(here());
    } catch (const base::Error& error) {
      return error.message();
    }
    return std::string("no complaint");
  };
  EXPECT_THAT(complaint(npy("<f4", "(2,)", "12345678")), testing::HasSubstr("this is f4 of 2\n"));
  EXPECT_THAT(complaint(npy("<f4", "(2,)", "12345678")), testing::HasSubstr("then task regress"));
  EXPECT_THAT(complaint(npy("|u1", "(2, 3)", "123456")),
              testing::HasSubstr("this is u1 of 2 x 3\n  fix: of rows with"));
  EXPECT_THAT(complaint(npy("|u1", "(3,)", "123")), testing::HasSubstr("as many labels as samples"));
}

TEST_F(ArraySourceTest, KeepsOtherArraysAsArrays) {
  put("radar.npy", npy("<f4", "(2, 1)", "12345678"));
  const auto source = open_npy({.path = folder_.path() / "radar.npy"});
  ASSERT_EQ(source->samples().size(), 2u);
  EXPECT_EQ(source->load(1)[0].extension, "npy");
  EXPECT_THAT(source->load(1)[0].bytes, testing::EndsWith("5678"));
  put("y.npy", npy("<f4", "(2,)", "12345678"));
  EXPECT_THROW(open_npy({.path = folder_.path() / "radar.npy"}), base::Error);
}

TEST_F(ArraySourceTest, ReadsMnist) {
  using std::string_literals::operator""s;
  put("train-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02"s + "abcd");
  put("train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x02\x03\x01"s);
  ASSERT_TRUE(looks_like_mnist(here()));
  const auto source = open_mnist(here());
  EXPECT_EQ(source->classes().size(), 4u);
  EXPECT_EQ(source->samples()[0], (SourceSample{"train-images-idx3-ubyte#0", 3, Part::train, 2}));
  EXPECT_THAT(image_at(*source, 1).pixels, ElementsAre('c', 'c', 'c', 'd', 'd', 'd'));
  put("train-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02"s + "abcd");
  EXPECT_THROW(open_mnist(here()), base::Error);
}

TEST_F(ArraySourceTest, RefusesAbsurdSizesOfMnist) {
  using std::string_literals::operator""s;
  put("train-labels-idx1-ubyte", "\0\0\x08\x01\0\0\0\x01\x03"s);
  put("train-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s + "abcd");
  try {
    open_mnist(here());
    FAIL() << "an image of 2^64 pixels was taken";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
  }
}

TEST_F(ArraySourceTest, ReadsCifar10And100) {
  put("data_batch_1.bin",
      std::string(1, '\2') + std::string(1024, 'r') + std::string(1024, 'g') + std::string(1024, 'b'));
  put("batches.meta.txt", "airplane\nautomobile\nbird\n\n");
  ASSERT_TRUE(looks_like_cifar(here()));
  const auto ten = open_cifar(here());
  EXPECT_THAT(ten->classes(), ElementsAre("airplane", "automobile", "bird"));
  EXPECT_EQ(ten->samples()[0].label, 2);
  const image::Image image = image_at(*ten, 0);
  EXPECT_EQ(image.width, 32);
  EXPECT_EQ(image.pixels[1], 'g');
  put("train.bin", std::string("\7\1", 2) + std::string(3072, 'x'));
  EXPECT_EQ(open_cifar(here())->samples()[0].label, 1);
  put("train.bin", "short");
  EXPECT_THROW(open_cifar(here()), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
