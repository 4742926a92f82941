// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/assumptions.h"

#include <cmath>
#include <cstdlib>
#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::planning {
namespace {

using base::text;
using forecast::Assumptions;

struct Row {
  const char* key;
  const char* help;
  std::function<std::string(const Assumptions&)> get;
  std::function<void(Assumptions&, const std::string&)> set;
};

double number_of(const std::string& words) {
  char* end = nullptr;
  const double value = std::strtod(words.c_str(), &end);
  if (words.empty() || !base::trim(end).empty() || !std::isfinite(value) || value < 0) {
    throw base::Error(base::Blame::user, text("'", words, "' is not a number of 0 or more"), "for example 1.2");
  }
  return value;
}

Row seconds(const char* key, double Assumptions::*member, const char* help) {
  return {key, help, [=](const Assumptions& all) { return base::exact_duration(all.*member); },
          [=](Assumptions& all, const std::string& words) { all.*member = base::parse_duration(words); }};
}
Row rate(const char* key, double Assumptions::*member, const char* help) {
  return {key, help, [=](const Assumptions& all) { return base::exact_rate(all.*member); },
          [=](Assumptions& all, const std::string& words) {
            all.*member = base::parse_rate(words);
            if (all.*member <= 0) throw base::Error(base::Blame::user, "must be above 0", "for example \"1 GB/s\"");
          }};
}
Row power(const char* key, double forecast::PowerRules::*member, const char* help) {
  return {key, help, [=](const Assumptions& all) { return text(all.power.*member); },
          [=](Assumptions& all, const std::string& words) { all.power.*member = number_of(words); }};
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows{
      seconds("start_up", &Assumptions::start_up,
              "of a job on GPUs, from its start until its first step begins to count"),
      seconds("start_up_cpu", &Assumptions::start_up_cpu, "likewise on processors"),
      rate("write_rate", &Assumptions::write_rate, "of a checkpoint, to the disk"),
      rate("hash_rate", &Assumptions::hash_rate, "of a checkpoint's SHA-256"),
      rate("copy_rate", &Assumptions::copy_rate, "of a checkpoint, from the GPU; the steps wait for it"),
      rate("read_rate", &Assumptions::read_rate, "of a checkpoint, restoring"),
      rate("upload_rate", &Assumptions::upload_rate, "of a batch on its way to the GPU; the step waits for it"),
      rate("inter_rate", &Assumptions::inter_rate, "between nodes whose link is not stated, one direction"),
      {"host", "what the launching thread takes, in what the calibrated one took (1.5: half as long again)",
       [](const Assumptions& all) { return text(all.host); },
       [](Assumptions& all, const std::string& words) {
         all.host = number_of(words);
         if (all.host <= 0) throw base::Error(base::Blame::user, "must be above 0", "for example 1.5");
       }},
      {"per_node", "GPUs of a node that nobody named; said, also of a machine's",
       [](const Assumptions& all) { return text(all.per_node); },
       [](Assumptions& all, const std::string& words) {
         const double value = number_of(words);
         if (value < 1 || value != std::floor(value)) {
           throw base::Error(base::Blame::user, text("'", words, "' is not a count"), "for example 8");
         }
         all.per_node = static_cast<int64_t>(value);
       }},
      {"kwh", "price of a kWh where the machine states none; 0: not counted",
       [](const Assumptions& all) { return text(all.kwh, " ", all.currency); },
       [](Assumptions& all, const std::string& words) {
         const size_t end = words.find_first_not_of("0123456789.");
         all.kwh = number_of(words.substr(0, end));
         if (end != std::string::npos) all.currency = std::string(base::trim(words.substr(end)));
       }},
      {"sample_bytes", "of a stored image, for the loader",
       [](const Assumptions& all) { return base::exact_bytes(std::llround(all.sample.stored_bytes)); },
       [](Assumptions& all, const std::string& words) {
         all.sample.stored_bytes = static_cast<double>(base::parse_bytes(words));
       }},
      {"sample_pixels", "of a stored image, for the loader",
       [](const Assumptions& all) { return text(all.sample.stored_pixels); },
       [](Assumptions& all, const std::string& words) { all.sample.stored_pixels = number_of(words); }},
      power("idle_share", &forecast::PowerRules::idle_share, "of a GPU's power limit, when nothing runs"),
      power("node_watts", &forecast::PowerRules::node_watts, "of a node beside its GPUs"),
      power("pue", &forecast::PowerRules::overhead, "watts of the building for each of the machine"),
  };
  return kRows;
}

}  // namespace

std::vector<Assumed> list_assumptions(const Assumptions& assumptions) {
  std::vector<Assumed> all;
  for (const auto& row : rows()) all.push_back({row.key, row.get(assumptions), row.help});
  return all;
}

void assume(Assumptions& assumptions, const std::string& words) {
  const size_t equals = words.find('=');
  const std::string key = words.substr(0, equals);
  std::vector<std::string> keys;
  for (const auto& row : rows()) {
    keys.emplace_back(row.key);
    if (key != row.key || equals == std::string::npos) continue;
    try {
      return row.set(assumptions, words.substr(equals + 1));
    } catch (const base::Error& error) {
      throw base::Error(error.blame(), text("--assume ", key, ": ", error.what()), error.fix());
    }
  }
  if (equals == std::string::npos) {
    throw base::Error(base::Blame::user, text("--assume ", words, ": no value"), "for example --assume pue=1.3");
  }
  throw base::Error(base::Blame::user, text("--assume: there is no '", key, "'"), base::did_you_mean(key, keys));
}

}  // namespace lockstep::planning
