// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lockstep/base/json.h"
#include "lockstep/sources/image_work.h"

namespace lockstep::sources {

// How often words stand in captions (task/ptb_tokens.h). Whole numbers only: the sum over the shards does not depend on
// order.
class WordCounts {
 public:
  void add(const FinishedSample& sample);  // "captions" of its json; none: nothing
  void add(const WordCounts& other);
  bool empty() const { return counts_.empty(); }
  base::Json to_json() const;
  static WordCounts from_json(const base::Json& value);

  // "word,count", the most frequent first, of equals by their bytes. task/vocabulary.h reads it.
  std::string csv() const;

  bool operator==(const WordCounts&) const = default;

 private:
  std::map<std::string, int64_t> counts_ = {};
};

}  // namespace lockstep::sources
