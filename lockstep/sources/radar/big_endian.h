// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::sources {

// Numbers of a format that has the most significant byte first. REQUIRES: `has` what is asked for.
class BigEndian {
 public:
  explicit BigEndian(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t size() const { return bytes_.size(); }
  bool has(size_t at, size_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }
  uint8_t u8(size_t at) const { return static_cast<uint8_t>(bytes_[at]); }
  uint16_t u16(size_t at) const { return static_cast<uint16_t>(u8(at) << 8 | u8(at + 1)); }
  int16_t i16(size_t at) const { return static_cast<int16_t>(u16(at)); }
  uint32_t u32(size_t at) const { return static_cast<uint32_t>(u16(at)) << 16 | u16(at + 2); }
  int32_t i32(size_t at) const { return static_cast<int32_t>(u32(at)); }
  float f32(size_t at) const { return std::bit_cast<float>(u32(at)); }
  std::string_view text(size_t at, size_t count) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, count};
  }
  std::span<const std::byte> part(size_t at, size_t count) const { return bytes_.subspan(at, count); }

 private:
  std::span<const std::byte> bytes_;
};

// The same for a writer.
class BigEndianText {
 public:
  void u8(uint8_t value) { bytes_ += static_cast<char>(value); }
  void u16(uint16_t value) {
    u8(static_cast<uint8_t>(value >> 8));
    u8(static_cast<uint8_t>(value));
  }
  void u32(uint32_t value) {
    u16(static_cast<uint16_t>(value >> 16));
    u16(static_cast<uint16_t>(value));
  }
  void f32(float value) { u32(std::bit_cast<uint32_t>(value)); }
  void text(std::string_view value) { bytes_ += value; }
  void zeros(size_t count) { bytes_.append(count, '\0'); }
  size_t size() const { return bytes_.size(); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace lockstep::sources
