// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/machine.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "lockstep/base/text.h"
#include "lockstep/spec/fields.h"
#include "lockstep/spec/override.h"

namespace lockstep::spec {
namespace {

const Section& link_section() {
  static const Section section =
      Table<Link>("link", "a connection")
          .add("name", &Link::name, "", anything, "as its maker calls it: NVLink 3, PCIe 3.0 x16, InfiniBand HDR")
          .add("rate", &Link::rate, Type::rate, non_negative,
               "one direction; per GPU inside a node, per node between nodes")
          .add("latency", &Link::latency, Type::duration, non_negative, "time of the smallest message")
          .done();
  return section;
}

const Section& links_section() {
  static const Section section = Table<Links>("links", "what connects the GPUs and the nodes")
                                     .nest("intra", &Links::intra, link_section(), "between the GPUs of a node")
                                     .nest("inter", &Links::inter, link_section(), "between nodes")
                                     .done();
  return section;
}

const Section& file_system_section() {
  static const Section section =
      Table<FileSystem>("file_system", "where the data lie")
          .add("kind", &FileSystem::kind, "", anything, "what kind of file system it is")
          .add("path", &FileSystem::path, "", anything, "where it is mounted")
          .add("read_rate", &FileSystem::read_rate, Type::rate, non_negative, "what one node reads")
          .add("capacity", &FileSystem::capacity, Type::bytes, non_negative, "room for one project")
          .done();
  return section;
}

const Section& scheduler_section() {
  static const Section section =
      Table<Scheduler>("scheduler", "who hands out the nodes")
          .add("kind", &Scheduler::kind, "", anything, "none: log in and run")
          .add("partition", &Scheduler::partition, "", anything, "partition (Slurm) or queue (PBS)")
          .add("account", &Scheduler::account, "", anything, "project that is charged")
          .add("project", &Scheduler::project, "", anything, "PBS: project (-P), where the site wants it beside -A")
          .add("qos", &Scheduler::qos, "", anything, "quality of service (Slurm)")
          .add("constraint", &Scheduler::constraint, "", anything,
               "features a node must have (Slurm), or further chunk resources (PBS): v100, host=a")
          .add("reservation", &Scheduler::reservation, "", anything, "nodes held for a course or a project")
          .add("walltime", &Scheduler::walltime, Type::duration, non_negative, "longest job; none: no limit known")
          .add("max_nodes", &Scheduler::max_nodes, "nodes", non_negative, "largest job; 0: not stated")
          .add("exclusive_nodes", &Scheduler::exclusive_nodes, "", anything, "a job gets whole nodes")
          .add("resources", &Scheduler::resources, "", anything,
               "how nodes and GPUs are asked for; standard: gres on Slurm, select on PBS; nodes: as Torque does; "
               "job_wide: PBS's -l ncpus= -l mem= -l ngpus=")
          .add("gpu_type", &Scheduler::gpu_type, "", anything, "the GPU's name in a request, where the site wants one")
          .add("memory", &Scheduler::memory, Type::bytes, non_negative,
               "main memory that a job asks for on each node; 0: what the plan says and a margin")
          .add("launcher", &Scheduler::launcher, "", anything,
               "mpirun: lockstep starts and watches the ranks; srun: srun --mpi=pmix does")
          .add("remote_shell", &Scheduler::remote_shell, "", anything,
               "how mpirun reaches the other nodes of a PBS job; standard: pbs_tmrsh where it is, else ssh")
          .add("modules", &Scheduler::modules, "", anything,
               "shell lines before the program: \"module load openmpi/4.1\"")
          .add("environment", &Scheduler::environment, "", anything, "NAME=VALUE for the program, as they stand")
          .add("container", &Scheduler::container, "", anything,
               "words in front of the program on each rank: apptainer exec --nv lockstep.sif")
          .add("signal_lead", &Scheduler::signal_lead, Type::duration, non_negative,
               "how long before its end Slurm warns a job; none: never. The run's own clock comes first")
          .add("extra", &Scheduler::extra, "", anything, "further directives, verbatim: --mail-type=END")
          .done();
  return section;
}

const Section& prices_section() {
  static const Section section =
      Table<Prices>("prices", "what it costs; 0: not stated")
          .add("currency", &Prices::currency, "", anything, "currency of all prices")
          .add("gpu_hour", &Prices::gpu_hour, "currency per hour", non_negative, "renting one GPU")
          .add("node_hour", &Prices::node_hour, "currency per hour", non_negative, "renting one node")
          .add("node", &Prices::node, "currency", non_negative, "buying one node")
          .add("kwh", &Prices::kwh, "currency per kWh", non_negative, "electricity")
          .add("unit", &Prices::unit, "", anything,
               "what a grant of this centre is counted in: CU, GPU-hour, core-hour")
          .add("node_hour_units", &Prices::node_hour_units, "units", non_negative,
               "units of a grant that one node costs in an hour")
          .done();
  return section;
}

bool is_assignment(const std::string& words) {
  const size_t equals = words.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const std::string_view name = std::string_view(words).substr(0, equals);
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return name.find_first_not_of(kLetters) == std::string_view::npos && kDigits.find(name[0]) == std::string_view::npos;
}

// What becomes one line of a batch script must be one line, and a name one word.
void check_scheduler(const Scheduler& scheduler,
                     const std::function<void(const std::string&, const std::string&, const std::string&)>& complain) {
  const auto control = [](const std::string& words) {
    return std::any_of(words.begin(), words.end(), [](char c) { return static_cast<unsigned char>(c) < 32; });
  };
  const std::vector<std::pair<const char*, const std::string*>> names{
      {"partition", &scheduler.partition},   {"account", &scheduler.account},
      {"project", &scheduler.project},       {"qos", &scheduler.qos},
      {"constraint", &scheduler.constraint}, {"reservation", &scheduler.reservation},
      {"gpu_type", &scheduler.gpu_type}};
  for (const auto& [key, value] : names) {
    if (control(*value) || value->find_first_of(" '\"\\#") != std::string::npos) {
      complain(base::text("scheduler.", key), base::text("'", *value, "' is not one plain word"),
               "write it as the scheduler's own commands print it");
    }
  }
  if (control(scheduler.container)) complain("scheduler.container", "holds a line end", "write it in one line");
  for (const auto& [key, lines] : {std::pair{"modules", &scheduler.modules}, {"extra", &scheduler.extra}}) {
    if (std::any_of(lines->begin(), lines->end(), control)) {
      complain(base::text("scheduler.", key), "one of its lines holds a line end", "make it two lines of the list");
    }
  }
  for (const auto& line : scheduler.environment) {
    if (is_assignment(line) && !control(line)) continue;
    complain("scheduler.environment", base::text("'", line, "' does not set a variable"), "write \"NAME=VALUE\"");
  }
  const bool slurm_form =
      scheduler.resources == ResourceForm::gres || scheduler.resources == ResourceForm::gpus_per_node;
  const bool pbs_form = scheduler.resources == ResourceForm::select || scheduler.resources == ResourceForm::nodes ||
                        scheduler.resources == ResourceForm::job_wide;
  if ((slurm_form && scheduler.kind == SchedulerKind::pbs) || (pbs_form && scheduler.kind == SchedulerKind::slurm)) {
    complain("scheduler.resources",
             base::text(name_of(scheduler.resources), " is not a form of ", name_of(scheduler.kind)),
             "gres or gpus_per_node for slurm, select, nodes or job_wide for pbs");
  }
  if (scheduler.launcher == Launcher::srun && scheduler.kind == SchedulerKind::pbs) {
    complain("scheduler.launcher", "srun belongs to slurm", "mpirun");
  }
  if (!scheduler.project.empty() && scheduler.kind == SchedulerKind::slurm) {
    complain("scheduler.project", "Slurm has accounts, no projects", "scheduler.account");
  }
}

bool is_date(const std::string& words) {
  if (words.size() != 4 && words.size() != 7 && words.size() != 10) return false;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool dash = i == 4 || i == 7;
    if (dash ? words[i] != '-' : words[i] < '0' || words[i] > '9') return false;
  }
  return true;
}

void check_machine(const Machine& machine, const base::Json& document, Problems& problems) {
  const auto complain = [&](const std::string& key, const std::string& what, const std::string& fix) {
    problems.add(locate(document, key), key, what, fix);
  };
  if (machine.gpus_per_node > 0 && machine.gpu.empty()) {
    complain("gpus_per_node", "the GPUs have no name", "give \"gpu\", a name of the catalogue, e.g. \"v100-32\"");
  }
  if (!machine.date.empty() && !is_date(machine.date)) {
    complain("date", base::text("'", machine.date, "' is not a date"), "write \"2026-11-15\", \"2026-11\" or \"2026\"");
  }
  check_scheduler(machine.scheduler, complain);
  if (machine.prices.unit.empty() != (machine.prices.node_hour_units == 0)) {
    complain("prices", "a grant's unit and what a node-hour costs in it belong together",
             "give both, e.g. \"unit\": \"GPU-hour\", \"node_hour_units\": 4, or neither");
  }
  if (machine.nodes > 0 && machine.scheduler.max_nodes > machine.nodes) {
    complain("scheduler.max_nodes", base::text("is more than the ", machine.nodes, " nodes there are"),
             "make it smaller, or leave it out");
  }
}

}  // namespace

const Section& machine_section() {
  static const Section section =
      Table<Machine>("machine", "where to train: nodes, GPUs, links, scheduler, prices")
          .add("name", &Machine::name, "", required, "short name: letters, digits, '-'")
          .add("title", &Machine::title, "", anything, "as people call it")
          .add("nodes", &Machine::nodes, "nodes", non_negative, "nodes of this kind; 0: not stated")
          .add("gpus_per_node", &Machine::gpus_per_node, "GPUs", between(0, 1024),
               "devices that a program sees (a K80 board is two)")
          .add("gpu", &Machine::gpu, "", anything, "name in the catalogue: k40, v100-32, a100-80, h200")
          .add("cpu", &Machine::cpu, "", anything, "name in the catalogue, or the maker's")
          .add("sockets_per_node", &Machine::sockets_per_node, "CPUs", between(0, 1024), "CPU packages; 0: not stated")
          .add("cores_per_node", &Machine::cores_per_node, "cores", between(0, 1 << 20),
               "physical cores; 0: not stated")
          .add("memory_per_node", &Machine::memory_per_node, Type::bytes, non_negative, "main memory")
          .nest("links", &Machine::links, links_section())
          .nest("file_system", &Machine::file_system, file_system_section())
          .nest("scheduler", &Machine::scheduler, scheduler_section())
          .add("submit_from", &Machine::submit_from, "", anything,
               "who queues the next job of a chain: the job itself, or you on the login node, all at once")
          .nest("prices", &Machine::prices, prices_section())
          .add("source", &Machine::source, "", anything, "where the figures come from")
          .add("date", &Machine::date, "", anything, "day of the source, as in 2026-11-15")
          .add("notes", &Machine::notes, "", anything, "what the figures leave out")
          .done();
  return section;
}

Machine parse_machine(const base::Json& document, const std::vector<std::string>& sets) {
  base::Json changed = document;
  apply_sets(machine_section(), changed, sets);
  Machine machine;
  Problems problems;
  read_document(machine_section(), &machine, changed, problems);
  if (problems.empty()) check_machine(machine, changed, problems);
  problems.throw_if_any();
  return machine;
}

Machine load_machine(const base::Path& path, const std::vector<std::string>& sets) {
  return parse_machine(base::read_json(path), sets);
}

base::Json to_json(const Machine& machine) {
  return write_document(machine_section(), &machine, Which::all);
}

base::Json changed_json(const Machine& machine) {
  return write_document(machine_section(), &machine, Which::changed);
}

void save_machine(const base::Path& path, const Machine& machine) {
  base::write_json(path, changed_json(machine));
}

}  // namespace lockstep::spec
