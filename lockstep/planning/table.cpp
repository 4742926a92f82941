// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/table.h"

#include <algorithm>
#include <set>

#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/planning/assumptions.h"
#include "lockstep/planning/wording.h"

namespace lockstep::planning {
namespace {

using base::Align;
using base::text;
using forecast::Option;

constexpr int64_t kWide = 96;        // columns that the marks and intervals need
constexpr size_t kMostReasons = 12;  // options whose reasons a screen can hold

std::string gigabytes(int64_t bytes) {
  const double value = static_cast<double>(bytes) / 1e9;
  return base::fixed(value, value < 99.95 ? 1 : 0);
}

std::string memory_cell(const Option& option) {
  return text(gigabytes(option.trial.memory.total), " / ",
              option.trial.capacity > 0 ? gigabytes(option.trial.capacity) : "?");
}

std::string step_cell(const Option& option) {
  if (!option.trial.time) return "-";
  const double seconds = option.trial.time->step.value;
  if (seconds < 1) return text(base::fixed(1e3 * seconds, seconds < 0.1 ? 1 : 0), " ms");
  return text(base::fixed(seconds, seconds < 10 ? 2 : 1), " s");
}

std::string marks(const Plan& plan, size_t i) {
  const auto index = static_cast<int64_t>(i);
  std::vector<std::string> words;
  if (index == plan.best.fastest) words.emplace_back("fastest");
  if (index == plan.best.cheapest && plan.options.size() > 1) words.emplace_back("cheapest");
  if (index == plan.best.smallest && plan.options.size() > 1) words.emplace_back("smallest");
  return words.size() == 3 ? "best in all" : base::join(words, ", ");
}

// A line broken at blanks, later lines further in.
std::string wrapped(const std::string& line, int64_t columns, const std::string& indent) {
  std::string out;
  std::string row;
  for (const auto& word : base::split(line, ' ')) {
    if (!row.empty() && static_cast<int64_t>(row.size() + 1 + word.size()) > columns) {
      out += row + "\n";
      row = indent + word;
    } else {
      row += row.empty() ? word : " " + word;
    }
  }
  return out + row + "\n";
}

std::string table_of(const Plan& plan, bool wide) {
  std::vector<base::Column> heads{{""},
                                  {"fits"},
                                  {"GB needed", Align::right},
                                  {"step", Align::right},
                                  {"run", Align::right},
                                  {"jobs", Align::right},
                                  {"cost", Align::right}};
  if (wide) heads.insert(heads.begin() + 4, {"", Align::right}), heads.push_back({""});
  base::Table table(heads);
  for (size_t i = 0; i < plan.options.size(); ++i) {
    const Option& option = plan.options[i];
    const std::string mark = marks(plan, i);
    std::string name = option.as_written ? label_of(option) : text("  ", changes_text(option));
    if (!wide) name = text(mark.empty() ? " " : "*", name);
    if (!option.drivable && option.as_written) name += " (!)";
    const bool unknown = option.trial.capacity == 0;
    const bool ends = option.feasible() && option.length;  // what it would cost if it fitted helps nobody here
    std::vector<std::string> cells{name,
                                   option.trial.refusal || !option.host_fits() ? "NO"
                                   : unknown                                   ? "?"
                                   : option.trial.fits                         ? "yes"
                                                                               : "NO",
                                   memory_cell(option),
                                   step_cell(option),
                                   option.trial.fits && option.length ? run_text(option) : "-",
                                   ends ? text(option.length->jobs) : "-",
                                   ends ? money_text(option) : "-"};
    if (wide) cells.insert(cells.begin() + 4, spread_text(option)), cells.push_back(mark);
    table.add(cells);
  }
  return table.to_text(1);
}

// Marks and intervals where there is room for them.
std::string table_within(const Plan& plan, int64_t columns) {
  const std::string table = table_of(plan, columns >= kWide);
  const auto lines = base::split(table, '\n');
  const bool fits = std::all_of(lines.begin(), lines.end(),
                                [&](const auto& line) { return static_cast<int64_t>(line.size()) <= columns; });
  return fits || columns < kWide ? table : table_of(plan, false);
}

std::string reasons(const Plan& plan, int64_t columns) {
  std::string out;
  if (plan.options.size() > kMostReasons) {
    return wrapped("why each loses: --report plan.html, or --json plan.json", columns, "  ");
  }
  for (const auto& option : plan.options) {
    std::string line = text(label_of(option), option.as_written ? "" : " with ", changes_text(option), ": ");
    line += base::join(option.why, "; ");
    out += wrapped(line, columns, "    ");
  }
  return out;
}

std::string pasteable(const Plan& plan, int64_t columns) {
  std::string out;
  for (size_t i = 0; i < plan.options.size(); ++i) {
    const Option& option = plan.options[i];
    if (option.changes.empty() || (marks(plan, i).empty() && plan.options.size() > kMostReasons)) continue;
    std::string line = text(label_of(option), ":");
    for (const auto& change : option.changes) line += " " + base::shell_words({"--set", change});
    out += wrapped(line, columns, "    ");
  }
  return out.empty() ? out : text("what to change:\n", out);
}

// Where the prices of the last column come from, and of when.
std::string prices_text(const Plan& plan) {
  std::set<std::string> sources;
  for (const auto& option : plan.options) {
    const forecast::Bill* rent = option.feasible() && option.length ? option.costs.cheapest_rent() : nullptr;
    if (rent) sources.insert(text(rent->source, ", ", rent->date));
  }
  return sources.empty() ? "" : text("prices: ", base::join({sources.begin(), sources.end()}, "; "));
}

}  // namespace

std::string to_text(const Plan& plan, int64_t columns) {
  std::string out;
  for (const auto& line : undriven(plan)) {
    if (plan.options.size() <= kMostReasons) out += wrapped(line, columns, "  ");
  }
  out += wrapped(headline(plan), columns, "  ");
  out += wrapped(description(plan), columns, "  ") + "\n";
  if (!plan.options.empty()) out += table_within(plan, columns) + "\n";
  if (plan.options.size() > kMostReasons) {
    for (const auto& line : undriven(plan)) out += wrapped("(!) " + line, columns, "    ");
  }
  out += reasons(plan, columns);
  out += pasteable(plan, columns);
  if (const std::string prices = prices_text(plan); !prices.empty()) out += wrapped(prices, columns, "  ");
  for (const auto& note : plan.notes) out += wrapped(text("note: ", note), columns, "  ");
  std::vector<std::string> assumed;
  for (const auto& row : list_assumptions(plan.assumptions)) {
    assumed.push_back(text(row.key, "=", row.value));
  }
  out += wrapped(text("assumed (--assume KEY=VALUE changes it): ", base::join(assumed, ", ")), columns, "  ");
  return out;
}

}  // namespace lockstep::planning
