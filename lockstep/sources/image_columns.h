// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/sources/text_table.h"

namespace lockstep::sources {

// What a list says of images besides their pixels: year, place. Constant once made.
class ImageColumns {
 public:
  // The first line of `list` names the columns, one of them that of the paths. `images`: their names in a collection; a
  // row is of the image whose name has its path as an end ("folder/1.jpg" of "all/folder/1.jpg"), and an image with
  // several such rows has the longest of these. User error that names list and line: no names of columns, no paths
  // among them, a row of another width, a path that stands twice or that two images end in, a list of none of them.
  ImageColumns(const base::Path& list, const std::vector<std::string>& images);

  // Column -> text, without cells that are empty; null of an image that the list does not have.
  base::Json of(int64_t image) const;
  const std::vector<std::string>& names() const { return names_; }  // of the columns, without that of the paths
  const std::string& sha256() const { return sha256_; }             // of the list's bytes
  int64_t num_unlisted() const { return num_unlisted_; }            // images that the list does not have
  const std::string& first_unlisted() const { return first_unlisted_; }
  // User error for a column that the list has not; `named_by` says who speaks of it.
  void require(const std::vector<std::string>& columns, const std::string& named_by) const;

 private:
  ImageColumns(std::string content, const std::string& list, const std::vector<std::string>& images);
  void read_names();
  void find_rows(const std::vector<std::string>& images);

  std::string sha256_;
  TextTable table_;
  int64_t path_column_ = -1;
  std::vector<std::string> names_;
  std::vector<int64_t> rows_;  // by image; -1: none
  int64_t num_unlisted_ = 0;
  std::string first_unlisted_;
};

}  // namespace lockstep::sources
