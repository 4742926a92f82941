// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/store/run_version.h"
#include "lockstep/store/store.h"
#include "lockstep/store/version.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::store {
namespace {

using base::Arguments;
using base::Blame;
using base::Error;
using base::Json;
using base::text;
using lockstep::store::Version;

const base::CommandLine& store_line() {
  static const base::CommandLine line{
      "store",
      "add RUN | list | show NAME[:TAG|VERSION] | tag NAME VERSION TAG | rollback NAME [TAG] | verify",
      "versions of trained networks, with names and tags, in a folder that several machines may share",
      {{"--store", "DIR", "the store (default: the environment variable LOCKSTEP_STORE)"},
       {"--name", "NAME", "of add: under which name"},
       {"--weights", "WHICH", "of add: best (default where it has validation), last, or a step with a checkpoint"},
       {"--licence", "TEXT", "of add: of the weights, in your words: CC-BY-4.0"},
       {"--tag", "TAG", "of add: let this tag point to the version at once"},
       {"--json", "FILE", "write the result as JSON (- = standard output, without the text)"}},
      "A version has the weights, the job, the plan, metrics, the fingerprint of the data, the licence and a model "
      "card;\n"
      "its id is the SHA-256 of its content. predict and eval take it where they take a run: STORE/NAME:TAG, or\n"
      "NAME:TAG with LOCKSTEP_STORE. rollback: TAG (default production) points to the version before it again.\n"
      "docs/formats/store.md has the files.\n"
      "examples: lockstep store tag pets 3 production --store /shared/store\n"
      "          lockstep predict /shared/store/pets:production photos\n"
      "          lockstep store add quickstart/run --name shapes --tag production --store quickstart/store"};
  return line;
}

base::Path store_of(const Arguments& arguments) {
  const char* variable = std::getenv("LOCKSTEP_STORE");
  const std::string folder = arguments.value_or("--store", variable ? variable : "");
  if (!folder.empty()) return folder;
  throw Error(Blame::user, "which store?", "--store DIR, or export LOCKSTEP_STORE=DIR");
}

std::string day(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%d %H:%M", &parts);
  return buffer;
}

Json to_json(const Version& version) {
  Json row = Json::object();
  row["name"] = version.name;
  row["version"] = version.number;
  row["id"] = version.id;
  row["tags"] = Json::array_of(version.tags);
  row["added"] = version.added;
  row["folder"] = version.folder.string();
  return row;
}

// What about.json says in one line: "top-1 92.93 %".
std::string headline_of(const Json& about) {
  const Json* metrics = about.find("metrics");
  const Json* headline = metrics && metrics->is_object() ? metrics->find("headline") : nullptr;
  return headline ? headline->string_or("text", "") : "not measured";
}

std::string line_of(const Version& version) {
  const std::string tags = version.tags.empty() ? "" : text(" (", base::join(version.tags, ", "), ")");
  return text(version.title(), tags, ": ", version.id.substr(0, 12));
}

void add_command(const Arguments& arguments) {
  const auto name = arguments.value("--name");
  if (arguments.positional.size() != 2 || !name) {
    throw Error(Blame::user, "add needs a run folder and a name", "lockstep store add RUN --name pets");
  }
  const base::Path store = store_of(arguments);
  const lockstep::store::RunVersion made(arguments.positional[1], arguments.value_or("--weights", ""),
                                         arguments.value_or("--licence", ""));
  for (const auto& note : made.source().notes) std::fprintf(stderr, "%s\n", note.c_str());
  Version version = lockstep::store::add(store, *name, made.parts());
  if (const auto tag = arguments.value("--tag")) {
    version = lockstep::store::set_tag(store, *name, text(version.number), *tag);
  }
  Json result = to_json(version);
  result["weights"] = made.source().which;
  base::give(arguments, result,
             text(line_of(version), "; ", made.source().which, "\nmodel card: ", version.card().string(), "\n"));
}

void list_command(const Arguments& arguments) {
  const base::Path store = store_of(arguments);
  base::Table table({{"name"}, {"version", base::Align::right}, {"id"}, {"added (UTC)"}, {"tags"}});
  Json rows = Json::array();
  for (const std::string& name : lockstep::store::names(store)) {
    for (const Version& version : lockstep::store::versions(store, name)) {
      table.add(
          {name, text(version.number), version.id.substr(0, 12), day(version.added), base::join(version.tags, ", ")});
      rows.push_back(to_json(version));
    }
  }
  base::give(arguments, rows, table.to_text());
}

void show_command(const Arguments& arguments) {
  if (arguments.positional.size() != 2) {
    throw Error(Blame::user, "show needs a name", "lockstep store show pets:production");
  }
  const Version version = lockstep::store::resolve(store_of(arguments), arguments.positional[1]);
  lockstep::store::check(version);
  const Json about = base::read_json(version.about(), {.max_bytes = size_t{64} << 20});
  Json result = to_json(version);
  result["bytes"] = lockstep::store::bytes_of(version.folder);
  result["about"] = about;
  const std::string which = about.at("weights").at("which").as_string(), headline = headline_of(about);
  const Json* calibration = about.find("calibration");
  const bool is_calibrated = calibration && !calibration->is_null();
  const std::string licence = about.at("licence").is_null() ? "not stated" : about.at("licence").as_string();
  base::give(arguments, result,
             text(line_of(version), ", added ", day(version.added), " UTC, ",
                  base::format_bytes(result.at("bytes").as_double()), ", every checksum right\n",
                  about.at("network").as_string(), ", ", about.at("task").as_string(), ": ", which,
                  which.ends_with(headline) ? "" : "; " + headline, is_calibrated ? "; calibrated" : "", "\nlicence: ",
                  licence, "\nfolder: ", version.folder.string(), "\nmodel card: ", version.card().string(), "\n"));
}

void tag_command(const Arguments& arguments) {
  if (arguments.positional.size() != 4) {
    throw Error(Blame::user, "tag needs a name, a version and a tag", "lockstep store tag pets 3 production");
  }
  const auto& words = arguments.positional;
  const Version version = lockstep::store::set_tag(store_of(arguments), words[1], words[2], words[3]);
  base::give(arguments, to_json(version), line_of(version) + "\n");
}

void rollback_command(const Arguments& arguments) {
  const auto& words = arguments.positional;
  if (words.size() < 2 || words.size() > 3) {
    throw Error(Blame::user, "rollback needs a name", "lockstep store rollback pets");
  }
  const Version version =
      lockstep::store::rollback(store_of(arguments), words[1], words.size() == 3 ? words[2] : "production");
  base::give(arguments, to_json(version), line_of(version) + "\n");
}

void verify_command(const Arguments& arguments) {
  const base::Path store = store_of(arguments);
  const auto found = lockstep::store::verify(store);
  Json result = Json::object();
  result["versions"] = found.versions;
  result["names"] = found.names;
  result["tags"] = found.tags;
  result["bytes"] = found.bytes;
  result["damage"] = Json::array_of(found.damage);
  result["notes"] = Json::array_of(found.notes);
  std::string shown = text(store.string(), ": ", found.versions, " versions, ", found.names, " names, ", found.tags,
                           " tags, ", base::format_bytes(static_cast<double>(found.bytes)), "; ",
                           found.damage.empty() ? "every checksum right" : "damaged", "\n");
  for (const auto& note : found.notes) shown += note + "\n";
  base::give(arguments, result, shown);
  if (found.damage.empty()) return;
  throw Error(Blame::machine, text(found.damage.size(), " damaged: ", base::join(found.damage, "; ")),
              "bring these back from a copy of the store, or remove a damaged version's folder and add its run again");
}

}  // namespace

LOCKSTEP_VERB(store)(const std::vector<std::string>& words) {
  const Arguments arguments = base::parse_arguments(store_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(store_line()).c_str(), stdout), 0;
  struct Act {
    const char* name;
    void (*run)(const Arguments&);
  };
  static constexpr Act kActs[] = {{"add", add_command}, {"list", list_command},         {"show", show_command},
                                  {"tag", tag_command}, {"rollback", rollback_command}, {"verify", verify_command}};
  const std::string act = arguments.positional.empty() ? "" : arguments.positional.front();
  std::vector<std::string> names;
  for (const Act& known : kActs) {
    if (act == known.name) return known.run(arguments), 0;
    names.emplace_back(known.name);
  }
  throw Error(Blame::user, act.empty() ? "what is to be done with the store?" : text("store has no '", act, "'"),
              base::did_you_mean(act, names));
}

}  // namespace lockstep::verbs::store
