// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lockstep/base/file.h"

namespace lockstep::run {

// A file that grows by whole records. One that could not be written in full (a full disk) is cut off again, so that
// the next one begins where readers look for it; but nothing that another process has appended meanwhile.
class RecordFile {
 public:
  // Goes on behind what is there.
  explicit RecordFile(const base::Path& path) : file_(path, base::FileWriter::Mode::append) {}

  void append(std::string_view record) { file_.write_whole(record); }  // one write(2); throws when it fails
  void sync() { file_.sync(); }

 private:
  base::FileWriter file_;
};

}  // namespace lockstep::run
