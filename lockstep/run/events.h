// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/base/file.h"
#include "lockstep/run/record_file.h"

namespace lockstep::run {

// Writes a TensorBoard event file: TFRecord framing (length, masked CRC32C) around hand-made protobuf messages.
// A restart makes a new file in the same folder; TensorBoard joins them.
class EventWriter {
 public:
  explicit EventWriter(const base::Path& folder);  // made when absent

  void scalar(std::string_view tag, int64_t step, double value);
  const base::Path& path() const { return path_; }

 private:
  void record(std::string_view event);

  base::Path path_;
  RecordFile file_;
};

}  // namespace lockstep::run
