// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/csv.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::base {
namespace {

// Reads field after field; knows the line it is in.
class Reader {
 public:
  Reader(std::string_view content, std::string source) : rest_(content), source_(std::move(source)) {}

  bool done() const { return rest_.empty(); }
  int line() const { return line_; }

  std::vector<std::string> row() {
    std::vector<std::string> cells;
    do cells.push_back(field());
    while (take(','));
    take('\r');
    if (take('\n')) ++line_;
    return cells;
  }

 private:
  bool take(char wanted) {
    if (rest_.empty() || rest_[0] != wanted) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string field() {
    if (take('"')) return quoted();
    const size_t end = std::min(rest_.find_first_of(",\r\n"), rest_.size());
    std::string cell(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return cell;
  }
  std::string quoted() {
    const int begun = line_;
    std::string cell;
    while (!rest_.empty()) {
      if (take('"') && !(rest_.size() > 0 && rest_[0] == '"')) return cell;
      if (rest_[0] == '\n') ++line_;
      cell += rest_[0];
      rest_.remove_prefix(1);
    }
    throw Error(Blame::user, text(source_, ":", begun, ": the quote that opens here is never closed"),
                "write a quote inside a field twice");
  }

  std::string_view rest_;
  std::string source_;
  int line_ = 1;
};

}  // namespace

const std::string& Csv::at(const Row& row, std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    throw Error(Blame::user, text(source, ":1: there is no column '", column, "'"), did_you_mean(column, columns));
  }
  return row.cells[static_cast<size_t>(found - columns.begin())];
}

Csv parse_csv(std::string_view content, const std::string& source) {
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);  // spreadsheets write a byte order mark
  Csv csv;
  csv.source = source;
  Reader reader(content, source);
  if (reader.done()) throw Error(Blame::user, text(source, ": is empty"), "the first line names the columns");
  csv.columns = reader.row();
  while (!reader.done()) {
    const int line = reader.line();
    Csv::Row row{reader.row(), line};
    if (row.cells.size() == 1 && row.cells[0].empty()) continue;
    if (row.cells.size() != csv.columns.size()) {
      throw Error(
          Blame::user,
          text(source, ":", line, ": ", row.cells.size(), " fields where the first line has ", csv.columns.size()),
          "put a field with a comma in it into double quotes");
    }
    csv.rows.push_back(std::move(row));
  }
  return csv;
}

}  // namespace lockstep::base
