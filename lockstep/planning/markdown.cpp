// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/markdown.h"

#include "lockstep/base/embedded.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/assumptions.h"
#include "lockstep/planning/wording.h"
#include "lockstep/version.h"

namespace lockstep::planning {
namespace {

using base::text;
using forecast::Option;

// A cell cannot hold what ends it, nor markup of its own.
std::string cell(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (c == '|' || c == '\\' || c == '<' || c == '`' || c == '*' || c == '_' || c == '[') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const auto& each : cells) line += " " + cell(each) + " |";
  return line + "\n";
}

std::string name_and_changes(const Option& option) {
  return option.as_written ? label_of(option) : text(label_of(option), ", ", changes_text(option));
}

std::string options_table(const Plan& plan) {
  std::string out = row({"", "fits", "memory", "of", "step", "samples/s", "epoch", "run", "jobs", "energy", "cost"});
  out += "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
  for (const auto& option : plan.options) {
    const auto& time = option.trial.time;
    const auto& length = option.length;
    out +=
        row({name_and_changes(option), option.trial.fits && option.host_fits() && !option.trial.refusal ? "yes" : "no",
             bytes_text(option.trial.memory.total), option.trial.capacity > 0 ? bytes_text(option.trial.capacity) : "?",
             time ? text(base::format_duration(time->step.value), " ", spread_text(option)) : "-",
             time ? base::fixed(option.samples_per_second, option.samples_per_second < 100 ? 1 : 0) : "-",
             length && length->epoch > 0 ? base::format_duration(length->epoch) : "-", length ? run_text(option) : "-",
             length && length->jobs > 0 ? text(length->jobs) : "-",
             option.energy ? text(base::fixed(option.costs.kwh, 2), " kWh") : "-", money_text(option)});
  }
  return out;
}

std::string memory_section(const Plan& plan) {
  const size_t index = plan.best.fastest >= 0 ? static_cast<size_t>(plan.best.fastest) : 0;
  const Option& option = plan.options[index];
  const forecast::MemoryForecast& memory = option.trial.memory;
  std::string out = text("## Memory on ", name_and_changes(option), "\n\n| class | bytes at the peak |\n|---|--:|\n");
  for (const auto& [kind, bytes] : memory.by_class) {
    if (bytes > 0) out += row({name_of(kind), bytes_text(bytes)});
  }
  out += row({"reserved and not used", bytes_text(memory.peak_reserved - memory.peak_allocated)});
  out += row({"CUDA context", bytes_text(memory.context)});
  if (memory.nccl > 0) out += row({"NCCL", bytes_text(memory.nccl)});
  out += row({"in all", bytes_text(memory.total)});
  out += text("\nThe peak is at ", memory.moment, ". Cold, in step 1, ", bytes_text(memory.cold_peak_reserved),
              " are reserved.\n");
  if (!option.trial.time) return out;
  out += text("\n## Time of a step on ", name_and_changes(option), "\n\n| class | seconds |\n|---|--:|\n");
  for (const auto& [kind, seconds] : option.trial.time->by_class) {
    if (seconds > 0) out += row({name_of(kind), base::format_duration(seconds)});
  }
  return out;
}

std::string bills_section(const Plan& plan) {
  std::string rows;
  for (const auto& option : plan.options) {
    if (!option.feasible()) continue;
    for (const auto& bill : option.costs.bills) {
      rows += row({name_and_changes(option), bill.kind, bill.payee.empty() ? "not named" : bill.payee,
                   text(base::fixed(bill.amount, 2), " ", bill.unit), bill.rule, text(bill.source, ", ", bill.date)});
    }
  }
  if (rows.empty()) return rows;
  return text("\n## Money\n\n| | kind | who | amount | rule | source |\n|---|---|---|--:|---|---|\n", rows);
}

}  // namespace

std::string to_markdown(const Plan& plan) {
  std::string out = text("# Plan: ", cell(plan.recorded ? plan.title : plan.job.name), "\n\n", headline(plan), ".\n\n");
  out += text(description(plan), ".\n\n");
  for (const auto& line : undriven(plan)) out += text("- ", line, "\n");
  out += "\n" + options_table(plan) + "\n";
  if (!plan.options.empty()) out += memory_section(plan);
  out += "\n## Why\n\n";
  for (const auto& option : plan.options) {
    out += text("- **", cell(name_and_changes(option)), "**: ", base::join(option.why, "; "));
    for (const auto& change : option.changes) out += text("; `", base::shell_words({"--set", change}), "`");
    out += "\n";
  }
  out += bills_section(plan);
  out += "\n## Assumed\n\n";
  for (const auto& row : list_assumptions(plan.assumptions)) {
    out += text("- `", row.key, "=", row.value, "`: ", row.help, "\n");
  }
  for (const auto& note : plan.notes) out += text("- ", note, "\n");
  return out + text("\nMade by lockstep ", LOCKSTEP_VERSION, " (", base::build_commit(), ").\n");
}

}  // namespace lockstep::planning
