// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::sources {

// A list of rows in a text file: CSV (RFC 4180: quotes, doubled quotes, line ends within quotes), TSV, or columns apart
// by ';', '|' or blanks (these without quotes). A quote opens at the beginning of a cell only; the separator is found
// in the first row. Rows are cut when they are asked for: a table of a million rows costs its text and 16 bytes a row.
class TextTable {
 public:
  // User error that names line and what is wrong: no UTF-8, a quote that is never closed, NUL bytes, no rows.
  // `source` names it in messages. Header::find_out: the first row is one unless a cell looks like an image's name.
  enum class Header { find_out, none };
  TextTable(std::string content, std::string source, Header header = Header::find_out);

  // For one of several lists, where another has a header. REQUIRES: none of its own, as many columns
  void borrow_header(const std::vector<std::string>& header) { header_ = header; }

  int64_t size() const { return static_cast<int64_t>(rows_.size()); }  // without the header
  const std::vector<std::string>& header() const { return header_; }   // empty: the file has none
  char separator() const { return separator_; }                        // ' ': any run of blanks
  int64_t num_columns() const { return num_columns_; }                 // of the first row
  std::vector<std::string> row(int64_t i) const;
  // As the row is written from that column on, separators and quotes included.
  std::string rest_of_row(int64_t i, int64_t column) const;
  int64_t line_of(int64_t i) const { return rows_[static_cast<size_t>(i)].line; }
  std::string where(int64_t i) const;  // "list.csv:12"
  const std::string& source() const { return source_; }

  // The first column with one of these names (any case, without '_' and blanks), or -1.
  int64_t find_column(const std::vector<std::string>& names) const;
  // The column a person named, by name or by number from 1. User error that lists the columns.
  int64_t named_column(const std::string& name) const;

 private:
  struct Row {
    uint64_t offset;
    uint32_t size;
    uint32_t line;
  };
  std::vector<std::string> cells(std::string_view row) const;
  struct RowEnd {
    size_t at;               // of the line end
    size_t num_lines = 0;    // line ends before it, within quotes
    bool in_quotes = false;  // the text ends there, with an open quote
  };
  RowEnd row_end(size_t begin, std::string_view separators) const;
  char find_separator() const;
  void cut_rows();

  std::string content_;
  std::string source_;
  char separator_ = ',';  // ' ': any run of blanks
  std::vector<Row> rows_;
  std::vector<std::string> header_;
  int64_t num_columns_ = 0;
};

}  // namespace lockstep::sources
