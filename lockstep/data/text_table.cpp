// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/text_table.h"

#include <algorithm>
#include <cctype>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/data/file_tree.h"

namespace lockstep::data {
namespace {

using base::Blame;
using base::Error;
using base::text;

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '_' && c != ' ' && c != '-') plain += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return plain;
}

}  // namespace

TextTable::TextTable(std::string content, std::string source, Header header)
    : content_(std::move(content)), source_(std::move(source)) {
  const auto fail = [this](const std::string& what, const char* fix) {
    throw Error(Blame::user, text(source_, ": ", what), fix);
  };
  if (content_.starts_with("\xEF\xBB\xBF")) content_.erase(0, 3);
  if (content_.find('\0') != std::string::npos) fail("this is no text: it holds NUL bytes", "is this the right file?");
  if (!base::is_utf8(content_)) fail("this is no UTF-8 text", "convert it: iconv -f latin1 -t utf-8");
  cut_rows();
  if (rows_.empty()) fail("the table has no rows", "is this the right file?");
  const std::string_view first = std::string_view(content_).substr(rows_[0].offset, rows_[0].size);
  separator_ = ' ';
  for (const char candidate : {'\t', ',', ';', '|'}) {
    if (first.find(candidate) != std::string_view::npos) {
      separator_ = candidate;
      break;
    }
  }
  std::vector<std::string> top = row(0);
  num_columns_ = static_cast<int64_t>(top.size());
  if (header == Header::find_out && num_columns_ > 1 &&
      std::none_of(top.begin(), top.end(), [](const auto& cell) { return has_picture_name(cell); })) {
    header_ = std::move(top);
    rows_.erase(rows_.begin());
    if (rows_.empty()) fail("the table has a header and no rows", "is this the right file?");
  }
}

// Line ends within quotes do not end a row. Empty rows and those that begin with '#' are passed over.
void TextTable::cut_rows() {
  size_t begin = 0, line = 1, begin_line = 1;
  bool quoted = false;
  for (size_t i = 0; i <= content_.size(); ++i) {
    const char c = i < content_.size() ? content_[i] : '\n';
    if (c == '"') quoted = !quoted;
    if (c != '\n') continue;
    if (quoted && i < content_.size()) {
      ++line;
      continue;
    }
    if (quoted) throw Error(Blame::user, text(source_, ":", begin_line, ": a quote is never closed"), "mend the line");
    size_t end = i;
    if (end > begin && content_[end - 1] == '\r') --end;
    const std::string_view row = std::string_view(content_).substr(begin, end - begin);
    if (!base::trim(row).empty() && row.front() != '#') {
      if (row.size() >= uint32_t{1} << 31) throw Error(Blame::user, text(source_, ":", begin_line, ": a row of 2 GiB"));
      rows_.push_back({begin, static_cast<uint32_t>(row.size()), static_cast<uint32_t>(begin_line)});
    }
    begin = i + 1;
    begin_line = ++line;
  }
}

std::vector<std::string> TextTable::cells(std::string_view row) const {
  std::vector<std::string> all;
  if (separator_ == ' ') {
    for (size_t i = 0; i < row.size();) {
      while (i < row.size() && (row[i] == ' ' || row[i] == '\t')) ++i;
      size_t end = i;
      while (end < row.size() && row[end] != ' ' && row[end] != '\t') ++end;
      if (end > i) all.emplace_back(row.substr(i, end - i));
      i = end;
    }
    return all;
  }
  std::string cell;
  bool quoted = false;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '"' && quoted && i + 1 < row.size() && row[i + 1] == '"') {
      cell += row[i++];
    } else if (row[i] == '"' && (quoted || base::trim(cell).empty())) {
      if (!quoted) cell.clear();
      quoted = !quoted;
    } else if (row[i] == separator_ && !quoted) {
      all.emplace_back(base::trim(cell));
      cell.clear();
    } else {
      cell += row[i];
    }
  }
  all.emplace_back(base::trim(cell));
  return all;
}

std::vector<std::string> TextTable::row(int64_t i) const {
  const Row& at = rows_[static_cast<size_t>(i)];
  return cells(std::string_view(content_).substr(at.offset, at.size));
}

std::string TextTable::where(int64_t i) const {
  return text(source_, ":", line_of(i));
}

int64_t TextTable::find_column(const std::vector<std::string>& names) const {
  for (const auto& name : names) {
    for (size_t i = 0; i < header_.size(); ++i) {
      if (plain_name(header_[i]) == plain_name(name)) return static_cast<int64_t>(i);
    }
  }
  return -1;
}

int64_t TextTable::named_column(const std::string& name) const {
  if (const int64_t found = find_column({name}); found >= 0) return found;
  const bool is_number = !name.empty() && name.size() < 6 &&
                         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isdigit(c); });
  if (is_number && std::stoll(name) >= 1 && std::stoll(name) <= num_columns_) return std::stoll(name) - 1;
  const std::string columns = header_.empty() ? text(num_columns_, " columns without names: give a number from 1")
                                              : text("the columns: ", base::join(header_, ", "));
  throw Error(Blame::user, text(source_, ": no column '", name, "'"), columns);
}

}  // namespace lockstep::data
