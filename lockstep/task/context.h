// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::task {

// What the classes of an image say of each other, and what is known of the image says of them: "no bicycle beside Saint
// George, nor in 1504". A weight for a pair of classes says how much likelier they are on one image than by chance: 1
// says nothing, 0.1 makes each unlikely beside the other. A detection's log-odds get strength * q * log(weight) of
// every other class on the image, q being the highest score of that class; so it is the unsure ones that give way. A
// weight for a class and a value of a column (year, place) says how much likelier the class is on such images: their
// log-odds get strength * log(weight).
class Context {
 public:
  // Lines "class,class,weight" in either order, and "class,COLUMN=VALUE,weight", where VALUE may be a range of numbers
  // "1400..1499", "..1817", "1950.."; cells may be quoted; what is not named weighs 1; a first line without a number is
  // a header. User error that names file and line: no number above 0, a class that is unknown.
  Context(std::string_view csv, const std::string& source, const std::vector<std::string>& classes, double strength);

  struct Answer {
    int32_t label = 0;
    float score = 0;
  };
  // The scores of the detections of an image, which do not depend on their order. `columns`: what is known of it, an
  // object of numbers and texts; of a column that it does not have nothing is said.
  std::vector<float> scores(const std::vector<Answer>& answers, const base::Json& columns = {}) const;
  bool has_columns() const { return !columns_.empty(); }
  std::vector<std::string> columns() const;  // that its lines name, sorted

 private:
  struct ColumnWeight {
    size_t label = 0;
    std::string column;
    std::string value;                // as it stands in the table
    std::optional<double> low, high;  // of a range
    bool is_range = false;
    double logarithm = 0;  // strength * log(weight)

    bool holds(const base::Json& columns) const;
  };
  static ColumnWeight read_column(const std::string& cell);

  size_t num_classes_;
  std::vector<double> logarithms_;  // strength * log(weight), [class, class]
  std::vector<ColumnWeight> columns_;
};

}  // namespace lockstep::task
