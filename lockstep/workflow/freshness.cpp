// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/freshness.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/fields.h"
#include "lockstep/spec/workflow_rules.h"

namespace lockstep::workflow {
namespace {

using base::text;

// A word may name by its whole path what the document names from its folder.
std::string whole_path(const std::string& path) {
  return spec::stage_path(std::filesystem::absolute(path).string());
}

bool lies_in(const std::string& path, const std::vector<std::string>& folders) {
  const std::string plain = whole_path(path);
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    const std::string outer = whole_path(folder);
    return plain == outer || plain.starts_with(outer + "/");
  });
}

// Files that the words of the command name: a script or a job that somebody edits is a reason too. What the stage
// writes or reads is accounted for elsewhere.
DigestsByPath files_in_words(const spec::Stage& stage, Digests& digests) {
  DigestsByPath all;
  auto own = spec::state_paths(stage);
  own.insert(own.end(), stage.outputs.begin(), stage.outputs.end());
  for (const auto& input : spec::stage_inputs(stage)) own.push_back(input);
  for (const auto& word : spec::fill_placeholders(stage.words(), spec::placeholder_values(stage))) {
    std::error_code unreadable;
    if (word.empty() || !std::filesystem::is_regular_file(word, unreadable) || lies_in(word, own)) continue;
    all[spec::stage_path(word)] = digests.of(word);
  }
  return all;
}

Basis basis_of(const spec::Stage& stage, const std::optional<Record>& record, Digests& digests) {
  Basis basis;
  basis.words.push_back(stage.kind());
  basis.words.insert(basis.words.end(), stage.words().begin(), stage.words().end());
  for (const auto& output : stage.outputs) basis.outputs.push_back(spec::stage_path(output));
  for (const auto& input : spec::stage_inputs(stage)) basis.inputs[spec::stage_path(input)] = digests.of(input);
  basis.files = files_in_words(stage, digests);
  // A file that was not there when it ran is something that it wrote, or has nothing to do with it.
  if (record && record->basis.words == basis.words) {
    std::erase_if(basis.files, [&](const auto& file) { return !record->basis.files.contains(file.first); });
    for (const auto& [path, digest] : record->basis.files) basis.files.try_emplace(path, digests.of(path));
  }
  return basis;
}

void compare(const char* what, const DigestsByPath& before, const DigestsByPath& now,
             std::vector<std::string>& reasons) {
  for (const auto& [path, digest] : now) {
    const auto was = before.find(path);
    if (was == before.end()) {
      reasons.push_back(text(what, " ", path, " is new"));
    } else if (was->second != digest) {
      reasons.push_back(text(what, " ", path, digest.empty() ? " is gone" : " changed"));
    }
  }
  for (const auto& [path, digest] : before) {
    if (!now.contains(path)) reasons.push_back(text(what, " ", path, " is named no more"));
  }
}

std::string command_line(const std::vector<std::string>& words) {
  return base::shell_words({words.begin() + 1, words.end()});
}

std::vector<std::string> reasons_for(const Freshness& found, Digests& digests) {
  if (!found.record) {
    if (!found.attempt) return {"never ran"};
    const std::string& trouble = found.attempt->trouble;
    return {trouble.empty() ? "it was killed before it was done" : text("it failed: ", trouble)};
  }
  const Basis& before = found.record->basis;
  const Basis& now = found.basis;
  std::vector<std::string> reasons;
  if (before.words != now.words) {
    reasons.push_back(before.words.front() != now.words.front()
                          ? text("it is ", now.words.front(), " now, was ", before.words.front())
                          : text("its command changed, was: ", command_line(before.words)));
  }
  if (before.outputs != now.outputs) reasons.emplace_back("its outputs are others now");
  compare("input", before.inputs, now.inputs, reasons);
  compare("file", before.files, now.files, reasons);
  for (const auto& [path, digest] : found.record->outputs) {
    const std::string is = digests.of(path);
    if (is != digest) {
      reasons.push_back(text("output ", path, is.empty() ? " is missing" : " was changed by somebody else"));
    }
  }
  return reasons;
}

}  // namespace

bool Freshness::changed_last_time(const std::string& path) const {
  return record && record->basis.words == basis.words &&
         std::count(record->changed.begin(), record->changed.end(), path) > 0;
}

Freshness look_at(const spec::Stage& stage, const StatePaths& paths, Digests& digests) {
  Freshness found;
  found.record = read_record(paths, stage.name);
  found.attempt = read_attempt(paths, stage.name);
  found.basis = basis_of(stage, found.record, digests);
  for (const auto& [path, digest] : found.basis.inputs) {
    if (digest.empty()) found.missing.push_back(path);
  }
  found.reasons = reasons_for(found, digests);
  return found;
}

void check_files(const spec::Workflow& workflow, const base::Path& document) {
  const auto needs = spec::stage_needs(workflow);
  spec::Problems problems;
  for (const auto& stage : workflow.stages) {
    auto written = stage.outputs;
    for (const auto& path : spec::state_paths(stage)) written.push_back(path);
    for (const auto& path : written) {
      const std::string whole = std::filesystem::weakly_canonical(path).string();
      if (!lies_in(std::filesystem::current_path().string(), {whole})) continue;
      problems.add(document.string(), text("stages.", stage.name, ".outputs"),
                   text("'", path, "' holds the workflow itself: it would be removed with it"),
                   "name the files or the folder that the stage makes");
    }
  }
  for (size_t i = 0; i < workflow.stages.size(); ++i) {
    const spec::Stage& stage = workflow.stages[i];
    std::vector<std::string> written;
    for (const size_t need : needs[i]) {
      const auto& outputs = workflow.stages[need].outputs;
      written.insert(written.end(), outputs.begin(), outputs.end());
    }
    for (const auto& input : spec::stage_inputs(stage)) {
      if (base::is_there(input) || lies_in(input, written)) continue;
      problems.add(document.string(), text("stages.", stage.name, ".inputs"),
                   text("'", input, "' is not there, and no stage writes it"),
                   text("put it into ", std::filesystem::current_path().string(), ", or name the stage's file"));
    }
  }
  problems.throw_if_any();
}

std::vector<StagePlan> plan_stages(const spec::Workflow& workflow, const StatePaths& paths, Digests& digests) {
  using What = StagePlan::What;
  const auto needs = spec::stage_needs(workflow);
  std::vector<What> by_stage(needs.size(), What::up_to_date);
  std::vector<StagePlan> all;
  for (const size_t i : spec::stage_order(workflow)) {
    const Freshness found = look_at(workflow.stages[i], paths, digests);
    std::vector<std::string> before;
    for (const size_t need : needs[i]) {
      if (by_stage[need] != What::up_to_date) before.push_back(workflow.stages[need].name);
    }
    StagePlan plan{i, found.up_to_date() ? What::up_to_date : What::runs, base::join(found.reasons, "; ")};
    if (found.up_to_date() && !before.empty()) {
      plan.what = What::may_run;
      plan.why = text("if ", base::join(before, ", "), " gives another content");
    } else if (!found.up_to_date() && before.empty() && !found.missing.empty()) {
      plan.what = What::cannot;
      plan.why = text("input ", base::join(found.missing, ", "), " is missing");
    }
    by_stage[i] = plan.what;
    all.push_back(std::move(plan));
  }
  return all;
}

}  // namespace lockstep::workflow
