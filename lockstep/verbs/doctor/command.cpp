// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <ctime>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/site/machine_here.h"
#include "lockstep/verbs/doctor/catalogue_table.h"
#include "lockstep/verbs/doctor/doctor.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::doctor {
namespace {

const base::CommandLine& doctor_line() {
  static const base::CommandLine line{
      "doctor",
      "[KIND]",
      "what this machine has, and for each wrong thing the command that fixes it",
      {{"--save", "FILE", "write a machine document of this machine"},
       {"--catalogue", "", "list the catalogue instead; KIND is gpus, cpus, machines, clouds, parts or all (default)"},
       {"--json", "FILE", "write the result as JSON (- = standard output, without the text)"}},
      "Takes about a second, needs no GPU, writes at most 64 MiB into the current folder for a moment (nothing on a\n"
      "login node), and never fails because something is missing.\n"
      "Own catalogue rows: *.json in ~/.config/lockstep/catalogue or in the folder $LOCKSTEP_CATALOGUE.\n"
      "examples: lockstep doctor --save machine.json\n"
      "          lockstep doctor --catalogue gpus"};
  return line;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", std::localtime(&now));
  return date;
}

void examine_here(const base::Arguments& arguments) {
  const auto catalogue = catalogue::load_catalogue();
  const auto probe = site::probe_site();
  const DoctorReport report = examine(probe, catalogue);
  const spec::Machine machine = site::describe_machine(probe, catalogue, today());
  std::string shown = to_text(report);
  if (const auto file = arguments.value("--save")) {
    spec::save_machine(*file, machine);
    shown += base::text("\nsaved ", *file, ": a machine document of this machine\n");
  }
  base::Json result = to_json(report);
  result["facts"] = site::facts_json(probe);
  result["machine"] = spec::to_json(machine);
  base::give(arguments, result, shown);
}

}  // namespace

LOCKSTEP_VERB(doctor)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(doctor_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(doctor_line()).c_str(), stdout), 0;
  if (!arguments.has("--catalogue")) {
    if (!arguments.positional.empty()) {
      throw base::Error(base::Blame::user, base::text("doctor takes no '", arguments.positional.front(), "'"),
                        base::text("for the catalogue: lockstep doctor --catalogue ",
                                   base::shell_word(arguments.positional.front())));
    }
    examine_here(arguments);
    return 0;
  }
  const std::string kind = arguments.positional.empty() ? "all" : arguments.only("kind of row");
  const auto catalogue = catalogue::load_catalogue();
  base::give(arguments, catalogue_json(catalogue, kind), catalogue_text(catalogue, kind));
  return 0;
}

}  // namespace lockstep::verbs::doctor
