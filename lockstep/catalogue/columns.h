// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/catalogue/rows.h"

namespace lockstep::catalogue {

// A member of a row and its key in the files. A plain string must be there and not be empty, except `notes`.
template <class Row>
struct Column {
  const char* key;
  std::variant<std::string Row::*, Text Row::*, Number Row::*, Count Row::*, std::vector<std::string> Row::*> member;
};

// The columns of each kind of row, in the order of the files.
template <class Row>
const std::vector<Column<Row>>& columns();
template <>
const std::vector<Column<Gpu>>& columns<Gpu>();
template <>
const std::vector<Column<Cpu>>& columns<Cpu>();
template <>
const std::vector<Column<MachineRow>>& columns<MachineRow>();
template <>
const std::vector<Column<Offer>>& columns<Offer>();
template <>
const std::vector<Column<Part>>& columns<Part>();

// User error with the place for an unknown key (nearest names), a wrong type, an id that is not a-z 0-9 - . +, a
// missing or empty source or date.
template <class Row>
Row parse_row(const base::Json& row);

template <class Row>
base::Json to_json(const Row& row);

}  // namespace lockstep::catalogue
