// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "lockstep/loader/store.h"

namespace lockstep::loader {

// For tests of orders: images of 100 bytes and more in files of 50 each, 1 KiB apart; there are no bytes.
class FakeStore final : public Store {
 public:
  std::string path(int64_t) const override { return ""; }
  Location locate(int64_t id) const override { return {id / 50, id % 50 * 1024 + 512, 100 + id % 7}; }
  std::string name(int64_t) const override { return ""; }
  std::span<const std::byte> read(int64_t, std::vector<std::byte>& memory) const override { return memory; }
  std::vector<std::span<const std::byte>> split(int64_t, std::span<const std::byte> bytes) const override {
    return {bytes};
  }
};

}  // namespace lockstep::loader
