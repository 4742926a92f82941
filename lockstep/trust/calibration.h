// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/results/terms.h"
#include "lockstep/trust/class_rows.h"
#include "lockstep/trust/conformal.h"

namespace lockstep::trust {

// What is known of how far to trust a network, found on samples with known classes that had no part in its training:
// the file trust.json of a run folder, which `lockstep eval RUN --calibrate` writes. It belongs to one set of weights
// and one way of showing them images; for anything else it is refused.
struct Calibration {
  results::Terms terms;      // of the network: weights, and the keys that decide what it gives
  std::string which = {};    // for people: "best, step 1200, top-1 92.93 %"
  std::string data = {};     // the folder of the samples
  std::string part = {};     // of the job: "validate"; empty: another folder
  std::string samples = {};  // fingerprint of the collection: its rows that were used are reported on by nobody
  int64_t fitted_rows = 0;   // that the temperature was fitted on; the thresholds are of as many others as `lac` has
  double temperature = 1;
  std::vector<double> lac = {}, aps = {};  // conformal scores of the threshold rows, ascending
  std::vector<Answer> answers = {};        // to the threshold rows, calibrated
  // Scores of the threshold rows as known samples, ascending: "energy"; "mahalanobis" and "neighbour" where the run
  // has features of its training images.
  std::map<std::string, std::vector<double>> known = {};

  int64_t threshold_rows() const { return static_cast<int64_t>(lac.size()); }

  // Calibrated.
  std::vector<double> probabilities(std::span<const float> logits) const { return softmax(logits, temperature); }
  // The classes that hold the right one with probability `coverage`, most probable first. User error: a coverage
  // outside of (0, 1), or one that needs more rows than there were.
  std::vector<int64_t> set_for(std::span<const float> logits, double coverage, SetMethod method = SetMethod::lac) const;
  // The confidence below which it should not answer, so that no more than `risk` of its answers are wrong. User error:
  // a risk outside of (0, 1), or one that cannot be shown to hold.
  double least_confidence(double risk) const;
  // The score below which a sample is called unusual: a known one with probability `rate`. User error likewise, and
  // for a score that was not calibrated.
  double unusual_below(const std::string& score, double rate) const;

  base::Json to_json() const;
  static Calibration from_json(const base::Json& document);
};

// Which of the calibration data a sample is for; the rest is for reporting. A matter of its number alone.
enum class RowUse { temperature, thresholds, report };
RowUse use_of(int64_t sample_id);

// Rows below which nothing is calibrated: a quarter of them gives thresholds, and 95 % needs 19.
constexpr int64_t kFewestCalibrationRows = 80;

// Temperature and thresholds from the rows that are for them. User error when they are too few.
Calibration calibrate(const ClassRows& rows);

base::Path calibration_file(const base::Path& run);
// Atomic.
void write_calibration(const base::Path& run, const Calibration& calibration);
// None where the run has none. User error: it is damaged.
std::optional<Calibration> read_calibration(const base::Path& run);
// The same for a network of these terms. User error that names the difference when it belongs to another one.
std::optional<Calibration> read_calibration(const base::Path& run, const results::Terms& network);

// A share that the user gave: "0.95" or "95%". User error outside of (0, 1), naming `option`.
double share_from(const std::string& word, const std::string& option);

}  // namespace lockstep::trust
