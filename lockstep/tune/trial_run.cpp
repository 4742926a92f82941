// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/trial_run.h"

#include <charconv>
#include <cmath>
#include <csignal>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/run/folder.h"
#include "lockstep/tune/trials.h"

namespace lockstep::tune {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

std::optional<double> number_in(std::string_view line) {
  line = base::trim(line);
  if (line == "nan" || line == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (line.starts_with('+')) line.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (line.empty() || error != std::errc() || end != line.data() + line.size()) return std::nullopt;
  return value;
}

class ProgramRun : public TrialRun {
 public:
  ProgramRun(const std::vector<std::string>& words, const ChildOptions& options, bool reports)
      : child_(words, options), reports_(reports) {}

  bool poll() override {
    const bool over = child_.poll();
    for (const auto& line : child_.take_lines()) {
      const auto value = number_in(line);
      if (!value) continue;
      last_ = value;
      ++lines_;
      if (reports_) pending_.emplace_back(lines_, *value);
    }
    return over;
  }

  std::vector<std::pair<int64_t, double>> take_reports() override { return std::exchange(pending_, {}); }

  void stop() override {
    stopped_ = true;
    child_.kill_now("stopped");
  }

  TrialEnd end() const override {
    if (stopped_) return {TrialEnd::How::stopped, last_.value_or(0)};
    if (child_.code() == 127) return {TrialEnd::How::refused, 0, child_.trouble()};
    if (child_.code() != 0) return {TrialEnd::How::crashed, 0, child_.trouble()};
    if (!last_) return {TrialEnd::How::refused, 0, "printed no number"};
    if (!std::isfinite(*last_)) return {TrialEnd::How::refused, 0, text("its value is ", number_text(*last_))};
    return {TrialEnd::How::complete, *last_};
  }

  const Child& child() const override { return child_; }

 private:
  Child child_;
  bool reports_;
  bool stopped_ = false;
  int64_t lines_ = 0;
  std::optional<double> last_;
  std::vector<std::pair<int64_t, double>> pending_;
};

class JobRun : public TrialRun {
 public:
  JobRun(JobTrial trial, const ChildOptions& options)
      : trial_(std::move(trial)), output_(options.output), child_(trial_.words, options) {}

  bool poll() override {
    const bool over = child_.poll();
    read_evaluations();
    return over;
  }

  std::vector<std::pair<int64_t, double>> take_reports() override { return std::exchange(pending_, {}); }

  void stop() override { child_.send(SIGTERM); }

  TrialEnd end() const override {
    const int code = child_.code();
    if (code == base::kExitRequeue) return {TrialEnd::How::stopped, best_.value_or(0)};
    if (code == static_cast<int>(Blame::user)) return {TrialEnd::How::refused, 0, last_words()};
    if (code != 0) return {TrialEnd::How::crashed, 0, last_words()};
    if (!best_) return {TrialEnd::How::refused, 0, "no evaluation gave a finite objective"};
    return {TrialEnd::How::complete, *best_};
  }

  const Child& child() const override { return child_; }

 private:
  // Whole lines of the run's journal that were not read yet.
  void read_evaluations() {
    const base::Path journal = run::RunPaths{trial_.run}.journal();
    if (!std::filesystem::exists(journal)) return;
    const std::string bytes = base::read_file(journal);
    if (bytes.size() < offset_) offset_ = 0;
    for (size_t end = bytes.find('\n', offset_); end != std::string::npos; end = bytes.find('\n', offset_)) {
      const std::string_view line = std::string_view(bytes).substr(offset_, end - offset_);
      offset_ = end + 1;
      if (line.find("\"evaluate\"") == std::string_view::npos) continue;
      Json event;
      try {
        event = base::parse_json(line, journal.string());
      } catch (const Error&) {  // a torn line
        continue;
      }
      if (event.string_or("event", "") == "evaluate" && event.string_or("split", "") == "validate") take(event);
    }
  }

  void take(const Json& event) {
    const double value = objective_of(event, trial_.objective);
    if (std::isfinite(value) && (!best_ || (trial_.maximize ? value > *best_ : value < *best_))) best_ = value;
    const auto epoch = static_cast<int64_t>(std::ceil(event.double_or("epoch", 0) - 1e-6));
    const int64_t step = std::max<int64_t>(1, epoch);
    if (step <= trial_.reported) return;
    trial_.reported = step;
    pending_.emplace_back(step, value);
  }

  // What the training said at its end.
  std::string last_words() const {
    std::string words;
    if (std::filesystem::exists(output_)) {
      for (const auto& line : base::split(base::read_file(output_), '\n')) {
        if (line.starts_with("lockstep: ")) words = line;
      }
    }
    return words.empty() ? text("exit code ", child_.code(), ", see ", output_) : words;
  }

  JobTrial trial_;
  std::string output_;
  Child child_;
  size_t offset_ = 0;
  std::optional<double> best_;
  std::vector<std::pair<int64_t, double>> pending_;
};

}  // namespace

double objective_of(const Json& event, const std::string& objective) {
  if (objective == "headline") {
    const Json* value = event.at("headline").find("value");
    return value && value->is_number() ? value->as_double() : std::numeric_limits<double>::quiet_NaN();
  }
  const Json* value = event.find(objective);
  if (value && value->is_number()) return value->as_double();
  if (value && value->is_null()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<std::string> figures;
  for (const auto& member : event.members()) {
    if (member.value.is_number() && member.key != "v" && member.key != "t") figures.push_back(member.key);
  }
  throw Error(Blame::user, text("objective '", objective, "': the validation of this job has no such figure"),
              base::did_you_mean(objective, figures));
}

std::unique_ptr<TrialRun> start_program(const std::vector<std::string>& words, const ChildOptions& options,
                                        bool reports) {
  return std::make_unique<ProgramRun>(words, options, reports);
}

std::unique_ptr<TrialRun> start_job(const JobTrial& trial, const ChildOptions& options) {
  return std::make_unique<JobRun>(trial, options);
}

}  // namespace lockstep::tune
