// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/machine_options.h"

#include <algorithm>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/machine_here.h"

namespace lockstep::planning {
namespace {

using base::Blame;
using base::Error;
using base::text;
using forecast::MachineOption;

// GPUs of each node, all nodes alike: as many as a node has, or fewer.
int64_t even_share(int64_t gpus, int64_t most) {
  int64_t share = std::min(gpus, most);
  while (gpus % share != 0) --share;
  return share;
}

class Finder {
 public:
  Finder(const MachineRequest& request, const catalogue::Catalogue& catalogue)
      : request_(request), catalogue_(catalogue) {}

  void find(const std::string& word) {
    if (word == "all") {
      for (const auto& gpu : catalogue_.gpus) add_gpu(gpu);
    } else if (word == "here" || word == "cpu") {
      Here here = request_.here();
      if (word == "cpu") here.machine.gpu.clear(), here.machine.gpus_per_node = 0;
      add_document(word, here.machine, Origin::own, &here.processor);
    } else if (word.ends_with(".json") || word.find('/') != std::string::npos) {
      const base::Json document = base::read_json(word);
      const spec::Machine machine = spec::parse_machine(document);
      catalogue::check_machine(machine, catalogue_, document);
      add_document(word, machine, Origin::own);
    } else {
      find_row(word);
    }
  }

  std::vector<MachineOption> take() { return std::move(machine_options_); }

 private:
  enum class Origin { own, catalogue };

  template <class Row>
  static const Row* row_of(const std::vector<Row>& rows, const std::string& id) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.id == id; });
    return found == rows.end() ? nullptr : &*found;
  }

  void find_row(const std::string& word) {
    if (const auto* gpu = row_of(catalogue_.gpus, word)) return add_gpu(*gpu);
    if (const auto* machine = row_of(catalogue_.machines, word)) return add_machine(*machine);
    if (const auto* cpu = row_of(catalogue_.cpus, word)) return add_processor(*cpu);
    if (const auto size = memory_in(word)) return add_size(word, *size);
    std::vector<std::string> names{"here", "cpu", "all"};
    for (const auto& row : catalogue_.gpus) names.push_back(row.id);
    for (const auto& row : catalogue_.machines) names.push_back(row.id);
    for (const auto& row : catalogue_.cpus) names.push_back(row.id);
    throw Error(Blame::user, text("--on: the catalogue has no GPU or machine '", word, "'"),
                text("whether it fits a GPU of that memory: --on 8GB; ", base::did_you_mean(word, names),
                     "; all: lockstep doctor --catalogue"));
  }

  // "8GB" -> 8, as makers state it.
  static std::optional<double> memory_in(const std::string& word) {
    const bool binary = word.ends_with("GiB");
    if (!binary && !word.ends_with("GB")) return std::nullopt;
    try {
      return static_cast<double>(base::parse_bytes(word)) / (binary ? 0x1p30 : 1e9);
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  // Any GPU of that memory, taken as one of a common kind: which it is decides on the kernels of attention.
  void add_size(const std::string& word, double gigabytes) {
    catalogue::Gpu gpu = catalogue_.gpu("rtx3080", "--on");
    MachineOption machine_option;
    machine_option.notes.push_back(text("any GPU of that memory, taken as one like ", gpu.id));
    machine_option.only_memory = true;
    gpu.id = gpu.name = word;
    gpu.memory_gb = gigabytes;
    gpu.driver_memory_mib.reset();
    add_gpu(gpu, machine_option);
  }

  void add_gpu(const catalogue::Gpu& gpu, MachineOption machine_option = {}) {
    machine_option.name = gpu.id;
    machine_option.gpu = gpu;
    machine_option.per_node = request_.per_node;
    machine_option.machine.name = gpu.id;
    machine_option.machine.gpu = gpu.id;
    const std::vector<int64_t> one{1};
    for (const int64_t count : request_.gpus.empty() ? one : request_.gpus) {
      machine_option.gpus = count;
      add(machine_option);
    }
  }

  void add_machine(const catalogue::MachineRow& row) {
    spec::Machine machine = catalogue::to_machine(row);
    if (row.gpus.empty()) return add_document(row.id, machine, Origin::catalogue);
    for (const auto& gpu : row.gpus) {
      machine.gpu = gpu;
      machine.gpus_per_node = std::max<int64_t>(1, row.gpus_per_node.value_or(1));
      add_document(row.id, machine, Origin::catalogue);
    }
  }

  void add_processor(const catalogue::Cpu& cpu) {
    spec::Machine machine;
    machine.name = cpu.id;
    machine.cpu = cpu.id;
    machine.sockets_per_node = 1;
    machine.cores_per_node = cpu.cores.value_or(0);
    add_document(cpu.id, machine, Origin::catalogue);
  }

  void add_document(const std::string& name, const spec::Machine& machine, Origin origin,
                    const catalogue::Cpu* otherwise = nullptr) {
    MachineOption machine_option;
    machine_option.name = name;
    machine_option.named = true;
    machine_option.own = origin == Origin::own;
    machine_option.machine = machine;
    if (const auto* cpu = row_of(catalogue_.cpus, machine.cpu)) {
      machine_option.cpu = *cpu;
    } else if (otherwise) {
      machine_option.cpu = *otherwise;
    } else if (!machine.cpu.empty() && machine.cores_per_node > 0) {
      const int64_t sockets = std::max<int64_t>(1, machine.sockets_per_node);
      machine_option.cpu =
          assume_processor(machine.cpu, std::max<int64_t>(1, machine.cores_per_node / sockets), false, machine.date);
    }
    const bool assumed = machine_option.cpu && !row_of(catalogue_.cpus, machine_option.cpu->id);
    if (assumed && machine.gpus_per_node == 0) machine_option.notes.push_back(machine_option.cpu->notes);
    if (machine.gpus_per_node > 0) return add_counts(machine_option);
    if (machine.cpu.empty()) {
      throw Error(Blame::user, text(name, " states neither its GPUs nor its processors"),
                  "write a machine document that says what it must have: {\"name\": ..., \"gpu\": \"a100-80\", "
                  "\"gpus_per_node\": 4}, and give its name to --on");
    }
    if (!machine_option.cpu) {
      throw Error(Blame::user, text(name, ": the catalogue has no processor '", machine.cpu, "'"),
                  "say cores_per_node in the document, or add a row to ~/.config/lockstep/catalogue/cpus.json: cores, "
                  "base_ghz, fp32_flops_per_cycle, bandwidth_gbs, source, date");
    }
    machine_option.gpus = 0;
    add(machine_option);
  }

  void add_counts(MachineOption machine_option) {
    const spec::Machine& machine = machine_option.machine;
    machine_option.gpu = catalogue_.gpu(machine.gpu, machine_option.name);
    machine_option.per_node = machine.gpus_per_node;
    if (request_.per_node_asked) {
      if (request_.per_node > machine.gpus_per_node) {
        throw Error(Blame::user,
                    text("--assume per_node=", request_.per_node, ": a node of ", machine_option.name, " has ",
                         machine.gpus_per_node, " GPUs"),
                    text("--assume per_node=", machine.gpus_per_node, " or fewer"));
      }
      machine_option.per_node = request_.per_node;
    }
    std::vector<int64_t> counts = request_.gpus;
    if (counts.empty()) counts = {1, machine_option.per_node};
    const int64_t nodes = machine.scheduler.max_nodes > 0 ? machine.scheduler.max_nodes : machine.nodes;
    const int64_t most = nodes * machine_option.per_node;
    for (const int64_t count : counts) {
      if (nodes > 0 && count > most) {
        throw Error(Blame::user,
                    text("--gpus ", count, ": ", machine_option.name, " gives a job ", most, " at most, ", nodes,
                         " nodes of ", machine_option.per_node),
                    text("--gpus ", most, " or fewer"));
      }
      machine_option.gpus = count;
      add(machine_option);
    }
  }

  // Each node has as many: those that do not fill their nodes are spread over more of them.
  void spread(MachineOption& machine_option) const {
    const int64_t gpus = machine_option.gpus;
    if (gpus <= machine_option.per_node || gpus % machine_option.per_node == 0) return;
    const int64_t most = machine_option.per_node;
    const int64_t share = even_share(gpus, most);
    const int64_t there = machine_option.machine.scheduler.max_nodes > 0 ? machine_option.machine.scheduler.max_nodes
                          : machine_option.named                         ? machine_option.machine.nodes
                                                                         : 0;
    if (there > 0 && gpus / share > there) {
      throw Error(Blame::user,
                  text("--gpus ", gpus, ": ", gpus / share, " nodes with ", share, " each would take as many; ",
                       machine_option.name, " gives a job ", there),
                  text("--gpus ", gpus / most * most, " or ", (gpus / most + 1) * most));
    }
    machine_option.per_node = share;
    machine_option.notes.push_back(text(gpus, " GPUs as ", gpus / share, " nodes with ", share, " each, of ", most));
  }

  void add(MachineOption machine_option) {
    if (machine_option.gpus > 0) spread(machine_option);
    const bool there = std::any_of(machine_options_.begin(), machine_options_.end(), [&](const MachineOption& other) {
      return other.name == machine_option.name && other.machine == machine_option.machine &&
             other.gpus == machine_option.gpus;
    });
    if (!there) machine_options_.push_back(std::move(machine_option));
  }

  const MachineRequest& request_;
  const catalogue::Catalogue& catalogue_;
  std::vector<MachineOption> machine_options_;
};

}  // namespace

catalogue::Cpu assume_processor(const std::string& name, int64_t cores, bool avx512, const std::string& date) {
  constexpr double kClock = 2.6;       // GHz: of servers, all cores busy
  constexpr double kBandwidth = 15.0;  // GB/s a core: of servers with their cores busy
  catalogue::Cpu row;
  row.id = "this-processor";
  row.name = name;
  row.cores = cores;
  row.base_ghz = kClock;
  // Two units for multiply-add, each 8 numbers wide; AVX-512 processors of one maker take two turns for 16.
  row.fp32_flops_per_cycle = 32;
  row.vector = avx512 ? "avx512" : "avx2";
  row.bandwidth_gbs = kBandwidth * static_cast<double>(cores);
  row.notes = text("the catalogue has no processor '", row.name, "': ", kClock, " GHz, 32 operations a cycle and ",
                   kBandwidth, " GB/s a core assumed");
  row.source = "lockstep doctor";
  row.date = date;
  return row;
}

Here describe_here(const site::Probe& probe, const catalogue::Catalogue& catalogue, const std::string& date) {
  const int64_t cores = std::max<int64_t>(1, std::min(probe.processor.cores, probe.processor.usable));
  return {site::describe_machine(probe, catalogue, date),
          assume_processor(probe.processor.model, cores, probe.processor.has("avx512f"), date)};
}

std::vector<MachineOption> find_machine_options(const MachineRequest& request, const catalogue::Catalogue& catalogue) {
  Finder finder(request, catalogue);
  for (const auto& word : request.on) finder.find(word);
  return finder.take();
}

}  // namespace lockstep::planning
