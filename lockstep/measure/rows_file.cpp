// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/rows_file.h"

namespace lockstep::measure {

void write_rows(const base::Path& path, const base::Json& rows) {
  std::string all = "[";
  if (rows.is_array()) {
    for (const auto& row : rows.items()) all += (all.size() > 1 ? ",\n" : "\n") + row.dump(-1);
  }
  base::write_file(path, all + "\n]\n");
}

base::Json read_rows(const base::Path& path) {
  return base::read_json(path, {.max_bytes = size_t{256} << 20});
}

}  // namespace lockstep::measure
