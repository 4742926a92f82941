// SPDX-License-Identifier: Apache-2.0
#include "lockstep/onnx/wire.h"

#include <gtest/gtest.h>

namespace lockstep::onnx {
namespace {

using std::string_literals::operator""s;

std::span<const std::byte> bytes_in(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The examples of protobuf's own description of the format.
TEST(WireTest, WritesVarintsAsProtobufDoes) {
  Wire wire;
  wire.add_int(1, 150);
  EXPECT_EQ(wire.to_string(), "\x08\x96\x01"s);
  Wire negative;
  negative.add_int(1, -2);
  EXPECT_EQ(negative.to_string(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
  Wire zero;
  zero.add_int(20, 0);
  EXPECT_EQ(zero.to_string(), "\xa0\x01\x00"s);
}

TEST(WireTest, WritesTextFloatsAndMessages) {
  Wire text;
  text.add_text(2, "testing");
  EXPECT_EQ(text.to_string(), "\x12\x07testing"s);
  Wire number;
  number.add_float(2, 1.0F);
  EXPECT_EQ(number.to_string(), "\x15\x00\x00\x80\x3f"s);
  Wire inner, outer;
  inner.add_int(1, 150);
  outer.add_message(3, inner);
  EXPECT_EQ(outer.to_string(), "\x1a\x03\x08\x96\x01"s);
  EXPECT_EQ(outer.size(), 5U);
}

TEST(WireTest, LargeBytesAreNotCopiedHoweverDeepTheyLie) {
  const std::string large(1000, 'x');
  Wire tensor, graph, model;
  tensor.add_text(8, "w");
  tensor.add_bytes(9, bytes_in(large));
  tensor.add_int(2, 1);
  graph.add_message(5, std::move(tensor));
  model.add_message(7, std::move(graph));
  const auto pieces = model.pieces();
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(static_cast<const void*>(pieces[1].data()), static_cast<const void*>(large.data()));
  EXPECT_EQ(model.to_string().size(), model.size());
  Wire nothing;
  nothing.add_bytes(9, {});
  EXPECT_EQ(nothing.to_string(), "\x4a\x00"s);
}

}  // namespace
}  // namespace lockstep::onnx
