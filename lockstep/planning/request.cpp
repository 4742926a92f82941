// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/request.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <ctime>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/planning/assumptions.h"
#include "lockstep/planning/machine_options.h"
#include "lockstep/weights/load_job.h"

namespace lockstep::planning {
namespace {

using base::Blame;
using base::Error;
using base::text;

int64_t whole_number(const std::string& word, const std::string& option, int64_t low) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < low) {
    throw Error(Blame::user, text(option, ": '", word, "' is not a count of ", low, " or more"), text(option, " 4"));
  }
  return value;
}

// A recorded step cannot be cut: --batch only tells how many samples it takes.
void fix_batch(forecast::Recording& recording, const std::string& file, int64_t batch) {
  const int64_t known = recording.micro_batch * recording.accumulation;
  if (known == 0 && batch == 0) {
    throw Error(Blame::user, text(file, " does not say how many samples its step takes"), "--batch N");
  }
  if (known > 0 && batch > 0 && batch != known) {
    throw Error(Blame::user, text("--batch ", batch, ": the step in ", file, " takes ", known, " samples"),
                "leave --batch out, or record the step again with that many");
  }
  if (known > 0) return;
  recording.micro_batch = batch;
  recording.accumulation = 1;
}

// The length of a run that has no job stands on the command line.
spec::Job job_of_recording(const base::Arguments& arguments, const forecast::Recording& recording) {
  spec::Job job;
  job.name = recording.title;
  job.training.steps = arguments.has("--steps") ? whole_number(*arguments.value("--steps"), "--steps", 1) : 0;
  if (arguments.has("--epochs")) {
    job.training.epochs = static_cast<double>(whole_number(*arguments.value("--epochs"), "--epochs", 1));
    if (!arguments.has("--samples")) {
      throw Error(Blame::user, "--epochs without the samples of one", "--samples N");
    }
  }
  job.evaluation.every_epochs = 0;
  job.data.validate.clear();
  return job;
}

std::vector<forecast::Lever> levers_from(const std::vector<std::string>& words) {
  const auto names = choices_of(forecast::Lever{});
  std::vector<forecast::Lever> levers;
  for (const auto& word : words) {
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
      throw Error(Blame::user, text("--levers: there is no lever '", word, "'"), base::did_you_mean(word, names));
    }
    levers.push_back(static_cast<forecast::Lever>(found - names.begin()));
  }
  if (levers.empty()) throw Error(Blame::user, "--levers says nothing", "--no-search, if none may be turned");
  return levers;
}

}  // namespace

std::string today() {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  return date;
}

std::vector<std::string> words_of(const base::Arguments& arguments, const std::string& option) {
  std::vector<std::string> all;
  for (const auto& list : arguments.values(option)) {
    for (const auto& word : base::split(list, ',')) {
      if (!base::trim(word).empty()) all.emplace_back(base::trim(word));
    }
  }
  return all;
}

std::vector<double> positive_numbers(const base::Arguments& arguments, const std::string& option,
                                     std::vector<double> otherwise) {
  if (!arguments.has(option)) return otherwise;
  std::vector<double> numbers;
  for (const auto& word : words_of(arguments, option)) {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (*end != '\0' || !(value > 0) || !std::isfinite(value)) {
      throw Error(Blame::user, text(option, ": '", word, "' is not a number above 0"), text(option, " 4"));
    }
    numbers.push_back(value);
  }
  if (numbers.empty()) throw Error(Blame::user, text(option, " says nothing"), text(option, " 4"));
  return numbers;
}

PlanRequest request_of(const base::Arguments& arguments, const catalogue::Catalogue& catalogue,
                       const RequestWords& words) {
  PlanRequest request;
  for (const auto& assumed : arguments.values("--assume")) assume(request.assumptions, assumed);
  const auto count = [&](const std::string& option) {
    return arguments.has(option) ? whole_number(*arguments.value(option), option, 1) : 0;
  };
  const int64_t samples = count("--samples");
  if (const auto file = arguments.value("--recording"); file && words.job.empty()) {
    if (!arguments.positional.empty()) {
      throw Error(Blame::user, "a recording stands instead of a job", text("leave out ", arguments.positional.front()));
    }
    request.recording = forecast::read_recording(*file);
    fix_batch(*request.recording, *file, count("--batch"));
    request.job = job_of_recording(arguments, *request.recording);
    request.lengths.samples = samples;
    if (request.job.training.steps == 0 && request.job.training.epochs == 0) {
      request.lengths.notes.emplace_back("hours, jobs and money need --steps N, or --samples N and --epochs E");
    }
  } else {
    auto loaded =
        weights::load_job(words.job.empty() ? arguments.only("job document") : words.job, arguments.values("--set"));
    request.job = std::move(loaded.job);
    request.lengths = find_lengths(request.job, samples, count("--validation-samples"));
    for (auto& note : loaded.notes) request.lengths.notes.push_back(std::move(note));
  }
  MachineRequest machine_options;
  machine_options.on = words.on.empty() ? words_of(arguments, "--on") : words.on;
  if (machine_options.on.empty()) {
    throw Error(Blame::user, "on which machine?", "--on a100-80,minotauro, --on here, or --on all");
  }
  for (const auto& word : words_of(arguments, "--gpus"))
    machine_options.gpus.push_back(whole_number(word, "--gpus", 1));
  machine_options.per_node = request.assumptions.per_node;
  for (const auto& assumed : arguments.values("--assume")) {
    if (assumed.starts_with("per_node=")) machine_options.per_node_asked = true;
  }
  machine_options.here = [&] { return describe_here(site::probe_site(), catalogue, today()); };
  request.machine_options = find_machine_options(machine_options, catalogue);
  request.search = !arguments.has("--no-search");
  if (arguments.has("--levers")) request.levers = levers_from(words_of(arguments, "--levers"));
  return request;
}

}  // namespace lockstep::planning
