// SPDX-License-Identifier: Apache-2.0
#include "lockstep/catalogue/catalogue.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/catalogue/columns.h"

namespace lockstep::catalogue {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::Path;

template <class Row>
const Row* find(const std::vector<Row>& rows, std::string_view id) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.id == id; });
  return found == rows.end() ? nullptr : &*found;
}

template <class Row>
const Row& require(const std::vector<Row>& rows, const char* kind, std::string_view id, const std::string& where) {
  if (const Row* row = find(rows, id)) return *row;
  std::vector<std::string> ids;
  ids.reserve(rows.size());
  for (const auto& row : rows) ids.push_back(row.id);
  throw Error(Blame::user, base::text(where, where.empty() ? "" : ": ", "unknown ", kind, " '", id, "'"),
              base::did_you_mean(id, ids));
}

template <class Row>
void add_rows(const Json& list, std::vector<Row>& rows) {
  std::map<std::string, std::string> seen;  // id -> its place in this file
  for (const auto& item : list.items()) {
    Row row = parse_row<Row>(item);
    const auto [earlier, first] = seen.emplace(row.id, item.where());
    if (!first) {
      throw Error(Blame::user, base::text(item.where(), ": the id '", row.id, "' stands twice in this file"),
                  base::text("keep one of them; the other is at ", earlier->second));
    }
    const auto known = std::find_if(rows.begin(), rows.end(), [&](const Row& other) { return other.id == row.id; });
    if (known == rows.end()) {
      rows.push_back(std::move(row));
    } else {
      *known = std::move(row);
    }
  }
}

// Small letters and digits only, words kept apart: "Intel(R) Xeon(R) CPU E5-2630 v3" -> " intel xeon e5 2630 v3 ".
std::string plain(std::string_view name) {
  std::string words = " ";
  for (size_t i = 0; i < name.size(); ++i) {
    for (const std::string_view mark : {"(R)", "(TM)"}) {
      if (name.substr(i, mark.size()) == mark) i += mark.size();
    }
    if (i >= name.size()) break;
    const auto c = static_cast<unsigned char>(name[i]);
    const char next = std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : ' ';
    if (next != ' ' || words.back() != ' ') words += next;
  }
  if (words.back() != ' ') words += ' ';
  if (const size_t filler = words.find(" cpu "); filler != std::string::npos) words.erase(filler, 4);
  return words;
}

std::vector<Path> user_files() {
  std::vector<Path> folders;
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config && *config) {
    folders.push_back(Path(config) / "lockstep/catalogue");
  } else if (const char* home = std::getenv("HOME"); home && *home) {
    folders.push_back(Path(home) / ".config/lockstep/catalogue");
  }
  const char* named = std::getenv("LOCKSTEP_CATALOGUE");
  if (named && *named) {
    if (!std::filesystem::is_directory(named)) {
      throw Error(Blame::user, base::text("LOCKSTEP_CATALOGUE=", named, ": there is no such folder"),
                  "name a folder with *.json files, or unset it");
    }
    folders.emplace_back(named);
  }
  std::vector<Path> files;
  for (const auto& folder : folders) {
    const auto start = static_cast<std::ptrdiff_t>(files.size());
    std::error_code missing;
    for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
      if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin() + start, files.end());
  }
  return files;
}

}  // namespace

const Gpu& Catalogue::gpu(std::string_view id, const std::string& where) const {
  return require(gpus, "GPU", id, where);
}

const Cpu& Catalogue::cpu(std::string_view id, const std::string& where) const {
  return require(cpus, "CPU", id, where);
}

const MachineRow& Catalogue::machine(std::string_view id, const std::string& where) const {
  return require(machines, "machine", id, where);
}

const Gpu* Catalogue::gpu_by_driver_name(std::string_view driver_name) const {
  const auto found = std::find_if(gpus.rbegin(), gpus.rend(), [&](const Gpu& row) {
    return std::find(row.driver_names.begin(), row.driver_names.end(), driver_name) != row.driver_names.end();
  });
  return found == gpus.rend() ? nullptr : &*found;
}

const Cpu* Catalogue::cpu_by_model_name(std::string_view model_name) const {
  const std::string model = plain(model_name);
  const auto found = std::find_if(cpus.rbegin(), cpus.rend(),
                                  [&](const Cpu& row) { return model.find(plain(row.name)) != std::string::npos; });
  return found == cpus.rend() ? nullptr : &*found;
}

void Catalogue::add(const Json& document) {
  for (const auto& [kind, list, position] : document.members()) {
    if (kind == "gpus") {
      add_rows(list, gpus);
    } else if (kind == "cpus") {
      add_rows(list, cpus);
    } else if (kind == "machines") {
      add_rows(list, machines);
    } else if (kind == "clouds") {
      add_rows(list, clouds);
    } else if (kind == "parts") {
      add_rows(list, parts);
    } else {
      throw Error(
          Blame::user,
          base::text(document.source(), ":", position.line, ":", position.column, ": unknown kind of row '", kind, "'"),
          base::did_you_mean(kind, {"gpus", "cpus", "machines", "clouds", "parts"}));
    }
  }
}

void Catalogue::check_references() const {
  for (const auto& row : machines) {
    for (const auto& id : row.gpus) (void)gpu(id, base::text("machine '", row.id, "'"));
    if (row.cpu) (void)cpu(*row.cpu, base::text("machine '", row.id, "'"));
  }
  for (const auto& row : clouds) {
    for (const auto& id : row.gpus) (void)gpu(id, base::text("offer '", row.id, "'"));
  }
  for (const auto& row : parts) {
    if (row.gpu) (void)gpu(*row.gpu, base::text("part '", row.id, "'"));
    if (row.cpu) (void)cpu(*row.cpu, base::text("part '", row.id, "'"));
  }
}

Catalogue load_embedded() {
  Catalogue all;
  for (const auto& file : base::embedded_files()) {
    const bool ours = file.name.starts_with("catalogue/") && file.name != "catalogue/sources.json" &&  // `get` reads it
                      !file.name.starts_with("catalogue/calibration/");  // the forecast reads these
    if (ours) all.add(base::parse_json(file.content, std::string(file.name)));
  }
  return all;
}

Catalogue load_catalogue() {
  Catalogue all = load_embedded();
  for (const auto& file : user_files()) all.add(base::read_json(file));
  all.check_references();
  return all;
}

void check_machine(const spec::Machine& machine, const Catalogue& catalogue, const Json& document) {
  const Json* value = document.is_object() ? document.find("gpu") : nullptr;
  if (!machine.gpu.empty()) (void)catalogue.gpu(machine.gpu, value ? value->where() : document.where());
}

spec::Machine to_machine(const MachineRow& row) {
  constexpr double kGiga = 1e9;
  const auto choice = [](auto fallback, const Text& word) {
    const auto names = choices_of(fallback);
    const auto found = std::find(names.begin(), names.end(), word.value_or(""));
    return found == names.end() ? fallback : static_cast<decltype(fallback)>(found - names.begin());
  };
  spec::Machine machine;
  machine.name = row.id;
  machine.title = row.name;
  machine.nodes = row.nodes.value_or(0);
  machine.gpus_per_node = row.gpus_per_node.value_or(0);
  if (!row.gpus.empty()) machine.gpu = row.gpus.front();
  machine.cpu = row.cpu.value_or("");
  machine.sockets_per_node = row.sockets_per_node.value_or(0);
  machine.cores_per_node = row.cores_per_node.value_or(0);
  machine.memory_per_node = static_cast<int64_t>(row.memory_gb_per_node.value_or(0) * kGiga);
  machine.links.intra = {row.intra_link.value_or(""), row.intra_gbs.value_or(0) * kGiga, 0};
  machine.links.inter = {row.inter_link.value_or(""), row.inter_gbs.value_or(0) * kGiga, 0};
  machine.file_system.kind = choice(spec::FileSystemKind::unknown, row.file_system);
  machine.scheduler.kind = choice(spec::SchedulerKind::none, row.scheduler);
  machine.scheduler.walltime = row.walltime_h.value_or(0) * 3600;
  if (row.price_per_node) {
    machine.prices.node = *row.price_per_node;
    machine.prices.currency = row.currency.value_or("USD");
  }
  machine.prices.unit = row.grant_unit.value_or("");
  machine.prices.node_hour_units = row.node_hour_units.value_or(0);
  machine.source = row.source;
  machine.date = row.date;
  machine.notes = row.notes;
  return machine;
}

}  // namespace lockstep::catalogue
