// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/verbs/get/get.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::get {
namespace {

using base::Json;
using base::text;

const base::CommandLine& get_line() {
  static const base::CommandLine line{
      "get",
      "[weights NAME | data NAME]",
      "named weights and datasets, with licence and checksum; without arguments, what there is",
      {{"--to", "PATH", "where to put it (default: models/NAME.safetensors, data/NAME)"},
       {"--from", "PATH", "take this file (or wheel, or folder) instead of the network, and check it"},
       {"--line", "", "only print the commands for a machine with a network"},
       {"--json", "FILE", "write the result as JSON (- = standard output, without the text)"}},
      "Weights arrive as safetensors, whatever their publisher's format; nothing in a file is ever executed.\n"
      "Jobs never touch the network: fetch first, then train.\n"
      "examples: lockstep get weights efficientnet_lite0\n"
      "          lockstep get weights resnet50 --from resnet50-11ad3fa6.pth --to resnet50.safetensors\n"
      "          lockstep get weights --from my.pth --to my.safetensors\n"
      "          lockstep get weights resnet50 --line"};
  return line;
}

Json to_json(const Source& source) {
  Json row;
  row["kind"] = source.kind;
  row["name"] = source.name;
  row["about"] = source.about;
  row["licence"] = source.licence;
  row["megabytes"] = source.megabytes;
  if (source.image_size > 0) {
    row["image_size"] = source.image_size;
    row["mean"] = Json::array_of(source.mean);
    row["std"] = Json::array_of(source.std);
    row["center_crop"] = source.center_crop;
  }
  return row;
}

void list(const base::Arguments& arguments) {
  base::Table table({{"kind"}, {"name"}, {"MB", base::Align::right}, {"what"}, {"licence"}});
  Json result = Json::array();
  for (const Source& source : known_sources()) {
    table.add({source.kind, source.name, base::fixed(source.megabytes, 0), source.about, source.licence});
    result.push_back(to_json(source));
  }
  base::give(arguments, result, table.to_text());
}

// How a job uses the file; it says itself how its images must be shown.
std::string job_keys(const Source& source, const base::Path& path) {
  Json model = Json::object();
  model["name"] = source.name;
  model["weights"] = path.string();
  return text("in the job: \"model\": ", model.dump(-1), "; image size ", source.image_size, ", mean ",
              Json::array_of(source.mean).dump(-1), ", std ", Json::array_of(source.std).dump(-1),
              " stand in the file and are used where the job does not say otherwise\n");
}

std::string describe(const Source& source, const GetResult& result) {
  std::string shown = text(result.path.string(), ": ", source.about, "; ",
                           base::fixed(static_cast<double>(result.bytes) / 1e6, 1), " MB, checksum right\n");
  shown += text("licence: ", source.licence, "\n");
  if (source.kind == "weights") shown += job_keys(source, result.path);
  for (const std::string& file : result.files) {
    shown += text("unpack: tar -xzf ", base::shell_path(file), " -C ", base::shell_path(result.path.string()), "\n");
  }
  return shown;
}

void convert_own(const base::Arguments& arguments) {
  const GetResult got = convert_weights(*arguments.value("--from"), *arguments.value("--to"));
  Json result;
  result["path"] = got.path.string();
  result["bytes"] = static_cast<int64_t>(got.bytes);
  result["tensors"] = static_cast<int64_t>(got.tensors);
  base::give(arguments, result, text(got.path.string(), ": ", got.tensors, " tensors\n"));
}

}  // namespace

LOCKSTEP_VERB(get)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(get_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(get_line()).c_str(), stdout), 0;
  if (arguments.positional.empty()) return list(arguments), 0;
  const bool own =
      arguments.positional == std::vector<std::string>{"weights"} && arguments.has("--from") && arguments.has("--to");
  if (own) return convert_own(arguments), 0;
  if (arguments.positional.size() != 2) {
    throw base::Error(base::Blame::user, "get needs a kind and a name",
                      "lockstep get weights NAME; `lockstep get` lists them");
  }
  const std::vector<Source> sources = known_sources();
  const Source& source = find_source(sources, arguments.positional[0], arguments.positional[1]);
  Json result = to_json(source);
  if (arguments.has("--line")) {
    result["elsewhere"] = elsewhere(source);
    base::give(arguments, result, elsewhere(source) + "\n");
    return 0;
  }
  std::optional<base::Path> from;
  if (const auto given = arguments.value("--from")) from = *given;
  const base::Path to = arguments.value_or("--to", default_target(source).string());
  const GetResult got = get_source(source, from, to);
  result["path"] = got.path.string();
  result["bytes"] = static_cast<int64_t>(got.bytes);
  result["tensors"] = static_cast<int64_t>(got.tensors);
  base::give(arguments, result, describe(source, got));
  return 0;
}

}  // namespace lockstep::verbs::get
