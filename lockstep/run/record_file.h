// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "lockstep/base/file.h"

namespace lockstep::run {

// A file that grows by whole records. One that could not be written in full (a full disk) is cut off again, so that
// the next one begins where readers look for it.
class RecordFile {
 public:
  explicit RecordFile(const base::Path& path);  // goes on behind what is there

  void append(std::string_view record);  // one write(2); throws when it fails
  void sync() { file_.sync(); }

 private:
  base::Path path_;
  base::FileWriter file_;
};

}  // namespace lockstep::run
