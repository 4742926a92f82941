// SPDX-License-Identifier: Apache-2.0
#include "lockstep/onnx/wire.h"

#include <cstring>

namespace lockstep::onnx {
namespace {

constexpr int64_t kVarint = 0, kLength = 2, kFourBytes = 5;  // wire types

}  // namespace

void Wire::put(std::string_view bytes) {
  if (pieces_.empty() || !pieces_.back().view.empty()) pieces_.emplace_back();
  pieces_.back().own += bytes;
  size_ += bytes.size();
}

void Wire::put_varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
  put(bytes);
}

void Wire::put_key(int64_t field, int64_t kind) {
  put_varint(static_cast<uint64_t>(field * 8 + kind));
}

void Wire::add_int(int64_t field, int64_t value) {
  put_key(field, kVarint);
  put_varint(static_cast<uint64_t>(value));
}

void Wire::add_float(int64_t field, float value) {
  put_key(field, kFourBytes);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  put({bytes, sizeof bytes});
}

void Wire::add_text(int64_t field, std::string_view value) {
  put_key(field, kLength);
  put_varint(value.size());
  put(value);
}

void Wire::add_bytes(int64_t field, std::span<const std::byte> bytes) {
  put_key(field, kLength);
  put_varint(bytes.size());
  if (bytes.empty()) return;
  pieces_.push_back({"", bytes});
  size_ += bytes.size();
}

void Wire::add_message(int64_t field, Wire message) {
  put_key(field, kLength);
  put_varint(message.size_);
  for (Piece& piece : message.pieces_) {
    if (piece.view.empty()) {
      put(piece.own);
    } else {
      size_ += piece.view.size();
      pieces_.push_back(std::move(piece));
    }
  }
}

std::vector<std::span<const std::byte>> Wire::pieces() const {
  std::vector<std::span<const std::byte>> all;
  all.reserve(pieces_.size());
  for (const Piece& piece : pieces_) {
    all.push_back(piece.view.empty() ? std::as_bytes(std::span(piece.own.data(), piece.own.size())) : piece.view);
  }
  return all;
}

std::string Wire::to_string() const {
  std::string all;
  all.reserve(size_);
  for (const auto piece : pieces()) all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  return all;
}

}  // namespace lockstep::onnx
