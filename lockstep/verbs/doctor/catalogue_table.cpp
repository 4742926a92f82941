// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/doctor/catalogue_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/catalogue/columns.h"

namespace lockstep::verbs::doctor {
namespace {

using base::Align;
using base::Table;

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> kKinds{"gpus", "cpus", "machines", "clouds", "parts"};
  return kKinds;
}

std::string cell(const catalogue::Number& value, int digits = -1) {
  if (!value) return "-";
  const bool whole = *value == std::floor(*value);
  return base::fixed(*value, digits >= 0 ? digits : whole ? 0 : *value < 100 ? 1 : 0);
}
std::string cell(const catalogue::Count& value) {
  return value ? std::to_string(*value) : "-";
}
std::string cell(const catalogue::Text& value) {
  return value.value_or("-");
}
std::string cell(const std::vector<std::string>& values) {
  return values.empty() ? "-" : base::join(values, " or ");
}

std::string gpu_table(const catalogue::Catalogue& all) {
  Table table({{"id"},
               {"name"},
               {"GB", Align::right},
               {"GB/s", Align::right},
               {"fp32", Align::right},
               {"fp16", Align::right},
               {"bf16", Align::right},
               {"tf32", Align::right},
               {"NVLink GB/s", Align::right},
               {"W", Align::right},
               {"capability"},
               {"CUDA until"}});
  for (const auto& row : all.gpus) {
    const bool nvidia = row.vendor == "NVIDIA";
    table.add({row.id, row.name, cell(row.memory_gb), cell(row.bandwidth_gbs), cell(row.tflops_fp32),
               cell(row.tflops_fp16), cell(row.tflops_bf16), cell(row.tflops_tf32), cell(row.nvlink_gbs),
               cell(row.tdp_w), cell(row.compute_capability), nvidia ? row.last_cuda.value_or("today") : "no CUDA"});
  }
  return table.to_text() + "  rates in TFLOP/s, dense; 0: the GPU does not have it; -: not known\n";
}

std::string cpu_table(const catalogue::Catalogue& all) {
  Table table({{"id"},
               {"name"},
               {"cores", Align::right},
               {"threads", Align::right},
               {"GHz", Align::right},
               {"vector"},
               {"GB/s", Align::right},
               {"W", Align::right},
               {"GBP", Align::right}});
  for (const auto& row : all.cpus) {
    table.add({row.id, row.vendor + " " + row.name, cell(row.cores), cell(row.threads), cell(row.base_ghz, 2),
               cell(row.vector), cell(row.bandwidth_gbs), cell(row.tdp_w), cell(row.price_gbp)});
  }
  return table.to_text();
}

std::string machine_table(const catalogue::Catalogue& all) {
  Table table({{"id"},
               {"nodes", Align::right},
               {"GPUs a node", Align::right},
               {"GPU"},
               {"CPU"},
               {"cores", Align::right},
               {"GB", Align::right},
               {"network"},
               {"GB/s", Align::right},
               {"scheduler"},
               {"limit h", Align::right}});
  for (const auto& row : all.machines) {
    table.add({row.id, cell(row.nodes), cell(row.gpus_per_node), row.gpus_per_node == 0 ? "none" : cell(row.gpus),
               cell(row.cpu), cell(row.cores_per_node), cell(row.memory_gb_per_node), cell(row.inter_link),
               cell(row.inter_gbs), cell(row.scheduler), cell(row.walltime_h)});
  }
  return table.to_text() + "  -: the source does not say; several GPUs: it leaves open which\n";
}

std::string cloud_table(const catalogue::Catalogue& all) {
  Table table({{"id"},
               {"provider"},
               {"GPU"},
               {"USD a GPU-hour", Align::right},
               {"free h", Align::right},
               {"limit h", Align::right},
               {"date"},
               {"source"}});
  for (const auto& row : all.clouds) {
    table.add({row.id, cell(row.provider), cell(row.gpus), cell(row.usd_per_gpu_hour, 2), cell(row.free_hours),
               cell(row.session_limit_h), row.date, row.source});
  }
  return table.to_text();
}

std::string part_table(const catalogue::Catalogue& all) {
  Table table({{"id"}, {"kind"}, {"name"}, {"GBP", Align::right}, {"date"}, {"source"}});
  for (const auto& row : all.parts) {
    table.add({row.id, row.kind, row.name, cell(row.price_gbp), row.date, row.source});
  }
  return table.to_text();
}

void check_kind(std::string_view kind) {
  if (kind == "all" || std::find(kinds().begin(), kinds().end(), kind) != kinds().end()) return;
  auto known = kinds();
  known.emplace_back("all");
  throw base::Error(base::Blame::user, base::text("the catalogue has no '", kind, "'"),
                    base::did_you_mean(kind, known));
}

template <class Row>
base::Json rows_json(const std::vector<Row>& rows) {
  base::Json list = base::Json::array();
  for (const auto& row : rows) list.push_back(catalogue::to_json(row));
  return list;
}

}  // namespace

std::string catalogue_text(const catalogue::Catalogue& catalogue, std::string_view kind) {
  check_kind(kind);
  std::string out;
  for (const auto& name : kinds()) {
    if (kind != "all" && kind != name) continue;
    if (kind == "all") out += base::text(out.empty() ? "" : "\n", name, "\n");
    out += name == "gpus"       ? gpu_table(catalogue)
           : name == "cpus"     ? cpu_table(catalogue)
           : name == "machines" ? machine_table(catalogue)
           : name == "clouds"   ? cloud_table(catalogue)
                                : part_table(catalogue);
  }
  return out + "  every row has its source and date: add --json -\n";
}

base::Json catalogue_json(const catalogue::Catalogue& catalogue, std::string_view kind) {
  check_kind(kind);
  const auto wanted = [&](const char* name) { return kind == "all" || kind == name; };
  base::Json all = base::Json::object();
  if (wanted("gpus")) all["gpus"] = rows_json(catalogue.gpus);
  if (wanted("cpus")) all["cpus"] = rows_json(catalogue.cpus);
  if (wanted("machines")) all["machines"] = rows_json(catalogue.machines);
  if (wanted("clouds")) all["clouds"] = rows_json(catalogue.clouds);
  if (wanted("parts")) all["parts"] = rows_json(catalogue.parts);
  return all;
}

}  // namespace lockstep::verbs::doctor
