// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/base/file.h"
#include "lockstep/onnx/model.h"

namespace lockstep::onnx {

// A file of ONNX stays below 2 GiB, which no reader of protobuf goes beyond.
inline constexpr uint64_t kMostBytes = uint64_t{2'000'000'000};

struct Written {
  base::Path file;
  base::Path data;  // beside it, with the tensors; empty: they are in the file
  uint64_t bytes = 0;
};

// Writes FILE.onnx; where the tensors have more than `most` bytes, all but small ones go to FILE.onnx.data, which has
// to stay beside it. Each file atomically (base::write_file), the data first. REQUIRES: check(model) passes. Machine
// error when the disk is full or fails.
Written write_file(const base::Path& path, const Model& model, uint64_t most = kMostBytes);

}  // namespace lockstep::onnx
