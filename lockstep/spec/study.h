// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/choice.h"
#include "lockstep/spec/fields.h"

namespace lockstep::spec {

// The study document: which job is tuned, over which values of which of its keys, how, and for how much. study.cpp
// declares each field once. Parameter space partitioning (`tune --partition`) reads `space` and `partition` of it.

LOCKSTEP_CHOICE(StudySampler, tpe, random, sobol, grid)
LOCKSTEP_CHOICE(StudyScheduler, none, median, asha)
// headline: as the headline of the job's task says; of a program: minimize.
LOCKSTEP_CHOICE(Direction, headline, minimize, maximize)

// The values that one key may take: exactly one of log, range and choice.
struct Dimension {
  std::string key;  // its name in the space: a key of the job, or a {name} of the program
  std::vector<double> log = {};
  std::vector<double> range = {};
  std::vector<base::Json> choice = {};
  bool integer = false;          // whole numbers; of a job's key: as that key is
  double step = 0;               // distance of the values of `range`; 0: any
  int64_t points = 0;            // sampler grid: how many values of a range without steps
  Named<std::string> when = {};  // only where those other keys have these values

  bool operator==(const Dimension&) const = default;
};

struct StudyBudget {
  double node_hours = 0;  // 0: no limit
  double money = 0;       // likewise
  double price = 0;       // of a node-hour, in the same currency
  double walltime = 0;    // seconds, of one session of `tune`

  bool operator==(const StudyBudget&) const = default;
};

struct Asha {
  int64_t first = 1;   // evaluation behind which trials are first compared
  int64_t factor = 4;  // of the trials that reach a rung one in so many goes on, to a rung so many times as far

  bool operator==(const Asha&) const = default;
};

struct Partition {
  int64_t starts = 2048;     // Sobol points from which regions are looked for
  int64_t chains = 8;        // of each region
  int64_t points = 20000;    // that measure the volumes
  double confidence = 0.99;  // of the intervals of all volumes together

  bool operator==(const Partition&) const = default;
};

struct Study {
  std::string name = "study";
  std::string job;  // empty: a program is tuned
  std::vector<Dimension> space = {};
  StudySampler sampler = StudySampler::tpe;
  StudyScheduler scheduler = StudyScheduler::none;
  std::string objective = "headline";
  Direction direction = Direction::headline;
  int64_t trials = 100;
  int64_t startup = 10;  // random trials before the sampler or scheduler has something to go by
  int64_t seed = 1;
  int64_t ranks = 1;      // of a trial
  int64_t retries = 2;    // a trial that crashed is tried again so often
  double time_limit = 0;  // seconds, of one run of a program
  StudyBudget budget;
  Asha asha;
  Partition partition;

  bool operator==(const Study&) const = default;
};

// As load_job, for study documents; the job's path is made relative to the document's folder. What a key of the space
// means is checked with the job at hand (tune/space.h).
Study load_study(const base::Path& path, const std::vector<std::string>& sets = {});
Study parse_study(const base::Json& document, const std::vector<std::string>& sets = {});

base::Json to_json(const Study& study);

const Section& study_section();  // the table of its fields

}  // namespace lockstep::spec
