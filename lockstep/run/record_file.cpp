// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/record_file.h"

#include <unistd.h>

#include "lockstep/base/error.h"

namespace lockstep::run {

RecordFile::RecordFile(const base::Path& path) : path_(path), file_(path, base::FileWriter::Mode::append) {}

void RecordFile::append(std::string_view record) {
  std::error_code unknown;
  const auto whole = std::filesystem::file_size(path_, unknown);
  try {
    file_.write(record);
  } catch (const base::Error&) {
    // Making a file shorter needs no space. Should even that fail, the reader's rules for a torn line remain.
    if (!unknown) static_cast<void>(::truncate(path_.c_str(), static_cast<off_t>(whole)) == 0);
    throw;
  }
}

}  // namespace lockstep::run
