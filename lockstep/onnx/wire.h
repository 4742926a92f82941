// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::onnx {

// One message in protobuf's wire format, as the pieces that make it up: large bytes are not copied. Fields go out in
// the order of the calls. (libtorch has a protobuf of its own, whose symbols another one would meet.)
class Wire {
 public:
  void add_int(int64_t field, int64_t value);  // a varint; a negative one takes ten bytes
  void add_float(int64_t field, float value);
  void add_text(int64_t field, std::string_view value);
  void add_bytes(int64_t field, std::span<const std::byte> bytes);  // which must outlive this
  void add_message(int64_t field, Wire message);

  uint64_t size() const { return size_; }
  std::vector<std::span<const std::byte>> pieces() const;  // valid as long as this lives and nothing is added
  std::string to_string() const;

 private:
  struct Piece {
    std::string own;                  // or:
    std::span<const std::byte> view;  // not empty
  };
  void put(std::string_view bytes);
  void put_key(int64_t field, int64_t kind);
  void put_varint(uint64_t value);

  std::deque<Piece> pieces_;
  uint64_t size_ = 0;
};

}  // namespace lockstep::onnx
