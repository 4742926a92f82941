// SPDX-License-Identifier: Apache-2.0
#include "lockstep/catalogue/columns.h"

#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::catalogue {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

[[noreturn]] void fail(const Json& at, const std::string& what, const std::string& fix) {
  throw Error(Blame::user, text(at.where(), ": ", what), fix);
}

void read(const Json& value, std::string& into) {
  into = value.as_string();
}
void read(const Json& value, Text& into) {
  if (!value.is_null()) into = value.as_string();
}
// No figure of a catalogue lies below zero.
void read(const Json& value, Number& into) {
  if (value.is_null()) return;
  into = value.as_double();
  if (*into < 0) fail(value, text(*into, " is below zero"), "null where the figure is not known");
}
void read(const Json& value, Count& into) {
  if (value.is_null()) return;
  into = value.as_int();
  if (*into < 0) fail(value, text(*into, " is below zero"), "null where the figure is not known");
}
void read(const Json& value, std::vector<std::string>& into) {
  for (const auto& item : value.items()) into.push_back(item.as_string());
}

Json written(const std::string& value) {
  return value;
}
template <class Value>
Json written(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}
Json written(const std::vector<std::string>& value) {
  return Json::array_of(value);
}

void check_id(const Json& id) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-.+";
  const std::string& word = id.as_string();
  if (word.empty() || word.find_first_not_of(kAllowed) != std::string::npos) {
    fail(id, text("'", word, "' is not an id"), "use small letters, digits and '-', e.g. \"a100-80\"");
  }
}

// What makes a row worth having: who says so, and when.
void check_provenance(const Json& row, const std::string& id) {
  for (const char* key : {"source", "date"}) {
    const Json* value = row.find(key);
    if (value && !value->is_null() && !value->as_string().empty()) continue;
    const bool source = std::string_view(key) == "source";
    fail(value ? *value : row, text("the row '", id, "' has no ", key),
         source ? "add \"source\": where the figures come from (a page, a data sheet, a paper)"
                : "add \"date\": when the figures were true or read, e.g. \"2026-11\"");
  }
}

// A plain string is what a row cannot do without; what may be unknown is a Text.
template <class Row>
void check_words(const Json& json, const Row& row) {
  for (const auto& column : columns<Row>()) {
    const auto* member = std::get_if<std::string Row::*>(&column.member);
    if (!member || std::string_view(column.key) == "notes" || !(row.**member).empty()) continue;
    const Json* value = json.find(column.key);
    fail(value ? *value : json, text("the row '", row.id, "' has no ", column.key), text("add \"", column.key, "\""));
  }
}

template <class Row>
void read_member(const Json::Member& member, Row& row, const std::string& source) {
  std::vector<std::string> keys;
  for (const auto& column : columns<Row>()) {
    if (member.key == column.key) {
      std::visit([&](auto into) { read(member.value, row.*into); }, column.member);
      return;
    }
    keys.emplace_back(column.key);
  }
  throw Error(
      Blame::user,
      text(source, ":", member.key_position.line, ":", member.key_position.column, ": unknown key '", member.key, "'"),
      base::did_you_mean(member.key, keys));
}

}  // namespace

template <>
const std::vector<Column<Gpu>>& columns<Gpu>() {
  static const std::vector<Column<Gpu>> kColumns{
      {"id", &Gpu::id},
      {"name", &Gpu::name},
      {"vendor", &Gpu::vendor},
      {"memory_gb", &Gpu::memory_gb},
      {"driver_memory_mib", &Gpu::driver_memory_mib},
      {"bandwidth_gbs", &Gpu::bandwidth_gbs},
      {"tflops_fp32", &Gpu::tflops_fp32},
      {"tflops_fp16", &Gpu::tflops_fp16},
      {"tflops_bf16", &Gpu::tflops_bf16},
      {"tflops_tf32", &Gpu::tflops_tf32},
      {"tflops_fp16_vector", &Gpu::tflops_fp16_vector},
      {"nvlink_gbs", &Gpu::nvlink_gbs},
      {"nvlink_gpus", &Gpu::nvlink_gpus},
      {"peer", &Gpu::peer},
      {"pcie", &Gpu::pcie},
      {"tdp_w", &Gpu::tdp_w},
      {"launch", &Gpu::launch},
      {"price_usd", &Gpu::price_usd},
      {"cores", &Gpu::cores},
      {"compute_capability", &Gpu::compute_capability},
      {"variant_of", &Gpu::variant_of},
      {"last_cuda", &Gpu::last_cuda},
      {"dies_per_board", &Gpu::dies_per_board},
      {"driver_names", &Gpu::driver_names},
      {"notes", &Gpu::notes},
      {"source", &Gpu::source},
      {"date", &Gpu::date},
  };
  return kColumns;
}

template <>
const std::vector<Column<Cpu>>& columns<Cpu>() {
  static const std::vector<Column<Cpu>> kColumns{
      {"id", &Cpu::id},
      {"name", &Cpu::name},
      {"vendor", &Cpu::vendor},
      {"cores", &Cpu::cores},
      {"threads", &Cpu::threads},
      {"base_ghz", &Cpu::base_ghz},
      {"vector", &Cpu::vector},
      {"fp32_flops_per_cycle", &Cpu::fp32_flops_per_cycle},
      {"bandwidth_gbs", &Cpu::bandwidth_gbs},
      {"tdp_w", &Cpu::tdp_w},
      {"price_gbp", &Cpu::price_gbp},
      {"notes", &Cpu::notes},
      {"source", &Cpu::source},
      {"date", &Cpu::date},
  };
  return kColumns;
}

template <>
const std::vector<Column<MachineRow>>& columns<MachineRow>() {
  static const std::vector<Column<MachineRow>> kColumns{
      {"id", &MachineRow::id},
      {"name", &MachineRow::name},
      {"site", &MachineRow::site},
      {"nodes", &MachineRow::nodes},
      {"gpus_per_node", &MachineRow::gpus_per_node},
      {"gpus", &MachineRow::gpus},
      {"cpu", &MachineRow::cpu},
      {"sockets_per_node", &MachineRow::sockets_per_node},
      {"cores_per_node", &MachineRow::cores_per_node},
      {"memory_gb_per_node", &MachineRow::memory_gb_per_node},
      {"local_disk_gb", &MachineRow::local_disk_gb},
      {"intra_link", &MachineRow::intra_link},
      {"intra_gbs", &MachineRow::intra_gbs},
      {"inter_link", &MachineRow::inter_link},
      {"inter_gbs", &MachineRow::inter_gbs},
      {"file_system", &MachineRow::file_system},
      {"scheduler", &MachineRow::scheduler},
      {"walltime_h", &MachineRow::walltime_h},
      {"price_per_node", &MachineRow::price_per_node},
      {"currency", &MachineRow::currency},
      {"grant_unit", &MachineRow::grant_unit},
      {"node_hour_units", &MachineRow::node_hour_units},
      {"notes", &MachineRow::notes},
      {"source", &MachineRow::source},
      {"date", &MachineRow::date},
  };
  return kColumns;
}

template <>
const std::vector<Column<Offer>>& columns<Offer>() {
  static const std::vector<Column<Offer>> kColumns{
      {"id", &Offer::id},
      {"provider", &Offer::provider},
      {"gpus", &Offer::gpus},
      {"usd_per_gpu_hour", &Offer::usd_per_gpu_hour},
      {"free_hours", &Offer::free_hours},
      {"session_limit_h", &Offer::session_limit_h},
      {"cores", &Offer::cores},
      {"memory_gb", &Offer::memory_gb},
      {"notes", &Offer::notes},
      {"source", &Offer::source},
      {"date", &Offer::date},
  };
  return kColumns;
}

template <>
const std::vector<Column<Part>>& columns<Part>() {
  static const std::vector<Column<Part>> kColumns{
      {"id", &Part::id},           {"kind", &Part::kind},
      {"name", &Part::name},       {"price_gbp", &Part::price_gbp},
      {"list", &Part::list},       {"gpu", &Part::gpu},
      {"cpu", &Part::cpu},         {"capacity_gb", &Part::capacity_gb},
      {"power_w", &Part::power_w}, {"notes", &Part::notes},
      {"source", &Part::source},   {"date", &Part::date},
  };
  return kColumns;
}

template <class Row>
Row parse_row(const Json& row) {
  if (!row.is_object()) fail(row, text("a row is an object, this is ", row.kind_name()), "{\"id\": ..., ...}");
  const Json* id = row.find("id");
  if (!id) fail(row, "the row has no id", "add \"id\": \"...\"");
  check_id(*id);
  Row parsed;
  for (const auto& member : row.members()) read_member(member, parsed, row.source());
  check_provenance(row, parsed.id);
  check_words(row, parsed);
  return parsed;
}

template <class Row>
Json to_json(const Row& row) {
  Json all = Json::object();
  for (const auto& column : columns<Row>()) {
    all[column.key] = std::visit([&](auto member) { return written(row.*member); }, column.member);
  }
  return all;
}

template Gpu parse_row<Gpu>(const Json&);
template Cpu parse_row<Cpu>(const Json&);
template MachineRow parse_row<MachineRow>(const Json&);
template Offer parse_row<Offer>(const Json&);
template Part parse_row<Part>(const Json&);
template Json to_json<Gpu>(const Gpu&);
template Json to_json<Cpu>(const Cpu&);
template Json to_json<MachineRow>(const MachineRow&);
template Json to_json<Offer>(const Offer&);
template Json to_json<Part>(const Part&);

}  // namespace lockstep::catalogue
