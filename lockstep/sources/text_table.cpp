// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/text_table.h"

#include <algorithm>
#include <cctype>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/sources/file_tree.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr std::string_view kSeparators = "\t,;|";  // in this order

bool is_blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

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
  if (!base::is_utf8(content_)) {
    throw Error(Blame::user, text(source_, ": this is no UTF-8 text"),
                text("convert it: iconv -f latin1 -t utf-8 ", base::shell_path(source_), " > NEW"));
  }
  if (content_.find('\n') == std::string::npos) std::replace(content_.begin(), content_.end(), '\r', '\n');  // old Macs
  separator_ = find_separator();
  cut_rows();
  if (rows_.empty()) fail("the table has no rows", "is this the right file?");
  std::vector<std::string> top = row(0);
  num_columns_ = static_cast<int64_t>(top.size());
  if (header == Header::find_out && num_columns_ > 1 &&
      std::none_of(top.begin(), top.end(), [](const auto& cell) { return has_image_name(cell); })) {
    header_ = std::move(top);
    rows_.erase(rows_.begin());
    if (rows_.empty()) fail("the table has a header and no rows", "is this the right file?");
  }
}

// The separator is looked for in the first row. Where that one ends depends on what begins a cell: until it is known,
// each candidate does.
char TextTable::find_separator() const {
  size_t begin = 0;
  std::string_view first;
  while (begin < content_.size()) {
    const size_t line_end = std::min(content_.find('\n', begin), content_.size());
    first = std::string_view(content_).substr(begin, line_end - begin);
    if (!base::trim(first).empty() && first.front() != '#') break;
    begin = line_end + 1;
  }
  if (const RowEnd end = row_end(begin, kSeparators); !end.in_quotes)
    first = std::string_view(content_).substr(std::min(begin, content_.size()), end.at - begin);
  for (const char candidate : kSeparators) {
    if (first.find(candidate) != std::string_view::npos) return candidate;
  }
  return ' ';
}

// Line ends within quotes do not end a row; a quote opens at the beginning of a cell only, elsewhere it is a letter
// (inches). Cells apart by blanks have no quotes.
TextTable::RowEnd TextTable::row_end(size_t begin, std::string_view separators) const {
  bool quoted = false, at_begin = true;
  RowEnd end{begin};
  for (; end.at < content_.size(); ++end.at) {
    const char c = content_[end.at];
    if (c == '\n' && !quoted) break;
    end.num_lines += c == '\n';
    if (quoted) {
      const bool doubled = c == '"' && end.at + 1 < content_.size() && content_[end.at + 1] == '"';
      if (doubled) ++end.at;
      quoted = c != '"' || doubled;
    } else if (separators.find(c) != std::string_view::npos) {
      at_begin = true;
    } else {
      quoted = c == '"' && at_begin && !separators.empty();
      at_begin = at_begin && is_blank(c);
    }
  }
  end.in_quotes = quoted;
  return end;
}

// Empty rows and those that begin with '#' are passed over.
void TextTable::cut_rows() {
  const std::string separators(separator_ == ' ' ? 0 : 1, separator_);
  size_t line = 1;
  for (size_t begin = 0; begin < content_.size();) {
    const size_t line_end = std::min(content_.find('\n', begin), content_.size());
    const bool is_remark = content_[begin] == '#';
    const RowEnd end = is_remark ? RowEnd{line_end} : row_end(begin, separators);
    if (end.in_quotes)
      throw Error(Blame::user, text(source_, ":", line, ": a quote is never closed"), "correct the line");
    size_t behind = end.at;
    if (behind > begin && content_[behind - 1] == '\r') --behind;
    const std::string_view row = std::string_view(content_).substr(begin, behind - begin);
    if (!base::trim(row).empty() && !is_remark) {
      if (row.size() >= uint32_t{1} << 31) throw Error(Blame::user, text(source_, ":", line, ": a row of 2 GiB"));
      rows_.push_back({begin, static_cast<uint32_t>(row.size()), static_cast<uint32_t>(line)});
    }
    begin = end.at + 1;
    line += 1 + end.num_lines;
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
  bool quoted = false, at_begin = true;
  for (size_t i = 0; i < row.size(); ++i) {
    if (row[i] == '"' && quoted && i + 1 < row.size() && row[i + 1] == '"') {
      cell += row[i++];
    } else if (row[i] == '"' && (quoted || at_begin)) {
      if (!quoted) cell.clear();
      quoted = !quoted;
      at_begin = false;
    } else if (row[i] == separator_ && !quoted) {
      all.emplace_back(base::trim(cell));
      cell.clear();
      at_begin = true;
    } else {
      cell += row[i];
      at_begin = at_begin && is_blank(row[i]);
    }
  }
  all.emplace_back(base::trim(cell));
  return all;
}

std::vector<std::string> TextTable::row(int64_t i) const {
  const Row& at = rows_[static_cast<size_t>(i)];
  return cells(std::string_view(content_).substr(at.offset, at.size));
}

std::string TextTable::rest_of_row(int64_t i, int64_t column) const {
  const Row& at = rows_[static_cast<size_t>(i)];
  const std::string_view row = std::string_view(content_).substr(at.offset, at.size);
  const char* blanks = separator_ == '\t' ? " " : " \t";
  size_t begin = 0;
  for (; column > 0 && begin < row.size(); --column) {
    // Cells before it end where `cells` ends them: a quote opens at the beginning of a cell only.
    size_t end = std::min(row.find_first_not_of(blanks, begin), row.size());
    bool quoted = false;
    const bool may_quote = separator_ != ' ' && end < row.size() && row[end] == '"';
    for (; end < row.size(); ++end) {
      if (may_quote && row[end] == '"') quoted = !quoted;
      if (!quoted && (row[end] == separator_ || (separator_ == ' ' && row[end] == '\t'))) break;
    }
    begin = std::min(end + 1, row.size());
  }
  return std::string(base::trim(row.substr(begin)));
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

}  // namespace lockstep::sources
