// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/image_columns.h"

#include <algorithm>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/source_table.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

constexpr int64_t kMostBytes = int64_t{4} << 30;

std::string normal_path(const std::string& path) {
  return Path(path).lexically_normal().generic_string();
}

using RowsByPath = std::unordered_map<std::string, int64_t>;

// The row whose path is the longest end of `name`, in whole names of folders.
RowsByPath::const_iterator longest_end(const RowsByPath& rows, const std::string& name) {
  for (size_t from = 0;;) {
    if (const auto found = rows.find(name.substr(from)); found != rows.end()) return found;
    const size_t slash = name.find('/', from);
    if (slash == std::string::npos) return rows.end();
    from = slash + 1;
  }
}

}  // namespace

ImageColumns::ImageColumns(const Path& list, const std::vector<std::string>& images)
    : ImageColumns(base::read_file(list, kMostBytes), list.string(), images) {}

ImageColumns::ImageColumns(std::string content, const std::string& list, const std::vector<std::string>& images)
    : sha256_(base::sha256_hex(content)), table_(std::move(content), list) {
  read_names();
  find_rows(images);
}

void ImageColumns::read_names() {
  const std::vector<std::string>& header = table_.header();
  if (header.empty()) {
    throw Error(Blame::user, text(table_.source(), ": the first line names no columns"),
                "let it name them: path,year,place");
  }
  path_column_ = path_column_of(table_);
  if (path_column_ < 0) {
    throw Error(Blame::user,
                text(table_.source(), ": none of its columns is that of the images' paths: ", base::join(header, ", ")),
                "call it path");
  }
  for (size_t i = 0; i < header.size(); ++i) {
    if (static_cast<int64_t>(i) == path_column_ || header[i].empty()) continue;
    if (std::find(names_.begin(), names_.end(), header[i]) != names_.end()) {
      throw Error(Blame::user, text(table_.source(), ": two columns are called '", header[i], "'"), "rename one");
    }
    names_.push_back(header[i]);
  }
}

void ImageColumns::find_rows(const std::vector<std::string>& images) {
  RowsByPath by_path;
  for (int64_t i = 0; i < table_.size(); ++i) {
    const std::vector<std::string> cells = table_.row(i);
    if (cells.size() != table_.header().size()) {
      throw Error(Blame::user,
                  text(table_.where(i), ": ", cells.size(), " cells where the first line has ", table_.header().size()),
                  "put a cell that holds the separator into double quotes");
    }
    const std::string path = normal_path(cells[static_cast<size_t>(path_column_)]);
    const auto [before, is_new] = by_path.emplace(path, i);
    if (!is_new) {
      throw Error(Blame::user,
                  text(table_.where(i), ": ", base::quote_json(path), " stands in line ",
                       table_.line_of(before->second), " too"),
                  "one row an image");
    }
  }
  std::unordered_map<int64_t, const std::string*> taken;
  for (const std::string& image : images) {
    const auto found = longest_end(by_path, normal_path(image));
    rows_.push_back(found == by_path.end() ? -1 : found->second);
    if (rows_.back() < 0) {
      if (num_unlisted_++ == 0) first_unlisted_ = image;
      continue;
    }
    const auto [other, is_new] = taken.emplace(found->second, &image);
    if (is_new || *other->second == image) continue;
    throw Error(Blame::user,
                text(table_.where(found->second), ": ", base::quote_json(found->first),
                     " is the end of two images: ", *other->second, " and ", image),
                "write the folders before the names");
  }
  if (num_unlisted_ == std::ssize(images) && !images.empty()) {
    throw Error(Blame::user,
                text(table_.source(), ": it has none of the ", images.size(), " images, such as ", first_unlisted_,
                     "; its first path is ", base::quote_json(table_.row(0)[static_cast<size_t>(path_column_)])),
                "the paths of the list are the ends of those of the images");
  }
}

base::Json ImageColumns::of(int64_t image) const {
  const int64_t row = rows_[static_cast<size_t>(image)];
  if (row < 0) return {};
  base::Json all = base::Json::object();
  const std::vector<std::string> cells = table_.row(row);
  for (size_t i = 0; i < cells.size(); ++i) {
    const std::string& name = table_.header()[i];
    if (static_cast<int64_t>(i) != path_column_ && !name.empty() && !cells[i].empty()) all[name] = cells[i];
  }
  return all;
}

void ImageColumns::require(const std::vector<std::string>& columns, const std::string& named_by) const {
  for (const std::string& column : columns) {
    if (std::find(names_.begin(), names_.end(), column) != names_.end()) continue;
    throw Error(Blame::user,
                text(table_.source(), ": no column '", column, "', of which ", named_by, " speaks; it has ",
                     base::join(names_, ", ")),
                text("add it (its cells may be empty), or leave its lines out of ", named_by));
  }
}

}  // namespace lockstep::sources
