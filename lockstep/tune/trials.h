// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/tune/space.h"

namespace lockstep::tune {

// As Optuna numbers them.
enum class TrialState { running = 0, complete = 1, pruned = 2, failed = 3, waiting = 4 };
const char* name_of(TrialState state);
inline bool is_finished(TrialState state) {
  return state != TrialState::running && state != TrialState::waiting;
}

inline constexpr const char* kWorkerAttr = "lockstep:worker";  // system: who runs it
inline constexpr const char* kPausedAttr = "lockstep:paused";  // system: true while it waits behind a rung

struct Trial {
  int64_t id = 0;      // over all studies of the file
  int64_t number = 0;  // within its study
  TrialState state = TrialState::running;
  Values values = {};  // of the parameters, internal
  std::map<std::string, Distribution> distributions = {};
  std::optional<double> objective = {};         // of a complete trial; of a pruned one perhaps its last value
  std::map<int64_t, double> intermediate = {};  // by step
  base::Json user_attrs = base::Json::object();
  base::Json system_attrs = base::Json::object();
  std::string start = {};     // ISO 8601
  std::string complete = {};  // likewise

  // The sum of what its constraints are violated by; 0: feasible.
  double violation() const;
  // Stopped behind a rung of asha, to go on once it is among the best of it. A running trial to Optuna, which cannot
  // open a finished one again.
  bool is_paused() const;
  std::string worker() const { return system_attrs.string_or(kWorkerAttr, ""); }  // empty: nobody's, or Optuna's
  // Its training says something, and it is not under way: complete, pruned or paused.
  bool is_judged() const { return state == TrialState::complete || state == TrialState::pruned || is_paused(); }
};

// What the lines of a journal come to for one study: Optuna's JournalStorageReplayResult.
class Trials {
 public:
  explicit Trials(std::string study) : study_(std::move(study)) {}

  // One line of the journal. User error for one that is no record of this format, or of an operation that only a
  // newer Optuna has; `where` names the line.
  void apply(std::string_view line, const std::string& where);

  bool has_study() const { return study_id_.has_value(); }
  int64_t study_id() const { return *study_id_; }
  bool maximize() const { return maximize_; }
  int64_t objectives() const { return objectives_; }
  int64_t next_trial_id() const { return next_trial_id_; }
  const std::vector<Trial>& all() const { return trials_; }
  const Trial& by_id(int64_t id) const;
  const std::vector<std::string>& study_names() const { return names_; }
  const base::Json& study_attrs() const { return attrs_; }

 private:
  void create_study(const base::Json& record);
  void create_trial(const base::Json& record);
  void change_trial(int64_t operation, const base::Json& record);

  std::string study_;
  std::vector<std::string> names_;  // by study id; empty: deleted
  std::optional<int64_t> study_id_;
  bool maximize_ = false;
  int64_t objectives_ = 1;
  int64_t next_trial_id_ = 0;
  std::vector<Trial> trials_;
  std::map<int64_t, size_t> index_;  // by trial id
  base::Json attrs_ = base::Json::object();
};

// A line of the journal with NaN and the infinities, which Python writes bare, as null and as numbers beyond any other.
base::Json parse_record(std::string_view line, const std::string& where);
// A number as Python's json reads it: NaN and Infinity bare, all digits.
std::string number_text(double value);
// The best complete, feasible trial; null: none.
const Trial* best_of(const std::vector<Trial>& trials, bool maximize);

}  // namespace lockstep::tune
