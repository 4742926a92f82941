// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"

namespace lockstep::sources {

struct TreeFile {
  std::string name;  // below the root, with '/'
  int64_t size = 0;

  bool operator==(const TreeFile&) const = default;
};

constexpr const char* kNoPlainFile = "a pipe, a socket or a device";
constexpr const char* kLeadsOut = "it leads out of the folder";
constexpr const char* kLinkReason = "a link: ";  // how the reasons of refused links begin

struct Refused {  // something of a source that is left out, and why
  std::string name;
  std::string reason;

  bool operator==(const Refused&) const = default;
};

// The files below a folder. Whatever a name says, nothing outside of the folder is read: absolute names of other
// places, "..", and links that lead out are refused. Calls may come from any thread. Whatever is not the files' own
// doing (EIO, ESTALE, too many open files, ...) is a machine error: nobody may take it for a missing or damaged file.
class FileTree {
 public:
  // User error when there is no such folder.
  explicit FileTree(const base::Path& root);
  ~FileTree();
  FileTree(const FileTree&) = delete;
  FileTree& operator=(const FileTree&) = delete;

  const base::Path& root() const { return root_; }

  struct Listing {
    std::vector<TreeFile> files;   // sorted by name (bytes)
    std::vector<Refused> refused;  // no UTF-8; links that lead out, nowhere or to a folder; pipes and the like
  };
  // Every visible file below `folder` ("" is the root), to any depth; links to folders are not entered.
  Listing list(const std::string& folder = "") const;
  std::vector<std::string> folders(const std::string& folder = "") const;  // visible ones, sorted, one level

  bool has_file(const std::string& name) const;
  bool has_folder(const std::string& name) const;
  // User error when it is no file below the root, machine error when it may not be read.
  int64_t size_of(const std::string& name) const;
  // The whole file. User error as above, or above `max_bytes`.
  std::string read(const std::string& name, int64_t max_bytes = int64_t{1} << 30) const;
  // Its first bytes, at most so many.
  std::string read_start(const std::string& name, int64_t bytes) const;

 private:
  int open_below(const std::string& given, int flags) const;  // -1 and errno

  base::Path root_;
  int descriptor_ = -1;
};

// As base::read_file, of plain files and links to them only: a pipe, which would be waited for, is a user error.
std::string read_plain_file(const base::Path& path, uint64_t max_bytes = uint64_t{1} << 30);

// The next entry of an open folder; null at its end. Machine error where the file system fails, which readdir tells
// almost like the end.
const dirent* next_entry(DIR* entries, const base::Path& folder);

// Lower-case extension without its dot; "" for none.
std::string extension_of(std::string_view name);
bool has_image_name(std::string_view name);  // .jpg, .png, ... in any case: image::kImageNames

}  // namespace lockstep::sources
