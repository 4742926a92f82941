// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/workflow_rules.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

using base::Json;
using base::text;

// The last value of an option among the words behind a verb; empty: none.
std::string option_in(const std::vector<std::string>& words, const std::string& option) {
  std::string found;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option && i + 1 < words.size()) found = words[i + 1];
    if (words[i].starts_with(option + "=")) found = words[i].substr(option.size() + 1);
  }
  return found;
}

// One is the other, or lies in it.
bool overlap(const std::string& a, const std::string& b) {
  const auto within = [](const std::string& inner, const std::string& outer) {
    return inner == outer || outer == "." || inner.starts_with(outer + "/");
  };
  return within(a, b) || within(b, a);
}

class WorkflowCheck {
 public:
  WorkflowCheck(const Workflow& workflow, const Json& document, Problems& problems)
      : workflow_(workflow), document_(document), problems_(problems) {}

  void run() {
    if (workflow_.stages.empty()) {
      problems_.add(document_, "stages", "there is nothing to do",
                    R"("stages": {"train": {"train": ["job.json", "--run", "runs/x"]}})");
    }
    if (!is_name(workflow_.name)) {
      problems_.add(document_, "name", text("'", workflow_.name, "' is no name of a folder"),
                    "letters, digits, '-', '_' and '.', a letter or digit first");
    }
    for (const auto& stage : workflow_.stages) check_stage(stage);
    check_outputs();
    if (problems_.empty()) check_cycle();
  }

 private:
  static bool is_name(const std::string& name) {
    const auto plain = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    return !name.empty() && name.size() <= 100 && plain(name[0]) &&
           std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '-' || c == '_' || c == '.'; });
  }

  void complain(const Stage& stage, const std::string& key, const std::string& what, const std::string& fix) {
    const Json* at = document_.find("stages");
    if (at && at->is_object()) at = at->find(stage.name);
    const Json* inner = at && at->is_object() && !key.empty() ? at->find(key) : nullptr;
    problems_.add(inner ? *inner
                  : at  ? *at
                        : document_,
                  text("stages.", stage.name, key.empty() ? "" : ".", key), what, fix);
  }

  void check_stage(const Stage& stage) {
    if (!is_name(stage.name)) {
      complain(stage, "", text("'", stage.name, "' is no name of a stage"),
               "letters, digits, '-', '_' and '.', a letter or digit first, at most 100");
    }
    check_paths(stage, "inputs", stage.inputs);
    check_paths(stage, "outputs", stage.outputs);
    check_paths(stage, "state", stage.state);
    check_words(stage);
    check_scaling(stage);
    for (const auto& other : stage.after) check_after(stage, other);
    for (const auto& input : stage_inputs(stage)) {
      for (const auto& output : stage.outputs) {
        if (!overlap(stage_path(input), stage_path(output))) continue;
        complain(stage, "outputs", text("it would write '", output, "', which it reads ('", input, "')"),
                 "read and write different files");
      }
    }
    if (stage.resources.jobs > 1 && !stage.goes_on()) {
      complain(stage, "resources", text("jobs ", stage.resources.jobs, ": each would start over"),
               "\"jobs\": 1, or \"restartable\": true where the command goes on by itself");
    }
    if (!stage.state.empty() && !stage.restartable) {
      complain(stage, "state", "state is of a restartable command", "\"restartable\": true, or leave it out");
    }
  }

  void check_paths(const Stage& stage, const char* key, const std::vector<std::string>& paths) {
    for (const auto& path : paths) {
      if (path.empty() || path.find('\0') != std::string::npos || path.find('\n') != std::string::npos) {
        complain(stage, key, "an empty path, or one with a line end", "name a file or a folder");
      }
    }
  }

  void check_words(const Stage& stage) {
    try {
      fill_placeholders(stage.words(), placeholder_values(stage));
    } catch (const base::Error& error) {
      return complain(stage, stage.kind(), error.what(), error.fix());
    }
    check_state(stage);
    if (!stage.copy.empty() && stage.outputs.size() != 1) {
      complain(stage, "outputs", text("copy writes one output, these are ", stage.outputs.size()),
               "\"outputs\": [\"data/raw\"]");
    }
    if (!stage.train.empty() && state_paths(stage).empty()) {
      complain(stage, "train", "it names no run folder", R"(add "--run", "runs/NAME")");
    }
    if (!stage.train.empty()) check_use(stage);
    if (stage.command.empty() && stage.resources.gpus == 0 && option_in(stage.words(), "--device") == "cuda") {
      complain(stage, stage.kind(), "it is to run on a GPU, and its resources have none: it would see none",
               R"("resources": {"gpus": 1})");
    }
  }

  // Starting over puts aside what it would have gone on from.
  void check_state(const Stage& stage) {
    for (const auto& state : state_paths(stage)) {
      for (const auto& input : stage_inputs(stage)) {
        if (!overlap(stage_path(input), stage_path(state))) continue;
        complain(stage, stage.state.empty() ? stage.kind() : "state",
                 text("it goes on from '", state, "' and reads '", input, "': one holds the other"),
                 "to start over puts aside what it goes on from: read something else");
      }
    }
  }

  // What is asked for and not used is paid for all the same.
  void check_use(const Stage& stage) {
    const auto says = [&](const char* word) { return std::count(stage.train.begin(), stage.train.end(), word) > 0; };
    if (const int64_t ranks = stage.resources.all_ranks(); ranks > 1 && !says("--ranks")) {
      complain(stage, "train", text("its resources are for ", ranks, " ranks, and it would train in one process"),
               R"(add "--ranks", "{ranks}")");
    }
    if (stage.resources.gpus > 0 && !says("--device")) {
      complain(stage, "train", "its resources have GPUs, and it would train on the CPU", R"(add "--device", "cuda")");
    }
  }

  void check_scaling(const Stage& stage) {
    for (const auto& [gpus, rate] : stage.scaling) {
      int64_t number = 0;
      const auto [end, error] = std::from_chars(gpus.data(), gpus.data() + gpus.size(), number);
      if (error != std::errc() || end != gpus.data() + gpus.size() || number < 1 || rate <= 0) {
        complain(stage, "scaling", text("'", gpus, "': a number of GPUs, and a throughput above 0"),
                 R"("scaling": {"1": 25.8, "8": 205.4})");
      }
    }
  }

  void check_after(const Stage& stage, const std::string& other) {
    try {
      if (workflow_.find(other) < workflow_.stages.size()) return;
    } catch (const base::Error& error) {
      complain(stage, "after", error.what(), error.fix());
    }
  }

  void check_outputs() {
    const auto& stages = workflow_.stages;
    for (size_t i = 0; i < stages.size(); ++i) {
      for (size_t j = 0; j <= i; ++j) {
        for (size_t a = 0; a < stages[i].outputs.size(); ++a) {
          for (size_t b = 0; b < stages[j].outputs.size(); ++b) {
            if (i == j && b >= a) continue;
            if (overlap(stage_path(stages[i].outputs[a]), stage_path(stages[j].outputs[b]))) tell_twice(i, a, j, b);
          }
        }
      }
    }
  }

  void tell_twice(size_t i, size_t a, size_t j, size_t b) {
    const Stage& one = workflow_.stages[i];
    const Stage& other = workflow_.stages[j];
    const std::string& path = one.outputs[a];
    const std::string& taken = other.outputs[b];
    complain(
        one, "outputs",
        text("'", path, "' is also written by stage '", other.name, "'", path == taken ? "" : text(" ('", taken, "')")),
        "each file has one stage that writes it: name another path, or the files one by one");
  }

  void check_cycle() {
    const auto needs = stage_needs(workflow_);
    std::vector<int> seen(needs.size(), 0);  // 1: on the way, 2: done
    std::vector<size_t> way;
    for (size_t i = 0; i < needs.size(); ++i) {
      if (walk(i, needs, seen, way)) return;
    }
  }

  bool walk(size_t stage, const std::vector<std::vector<size_t>>& needs, std::vector<int>& seen,
            std::vector<size_t>& way) {
    if (seen[stage] == 2) return false;
    if (seen[stage] == 1) return tell_cycle(stage, way), true;
    seen[stage] = 1;
    way.push_back(stage);
    for (const size_t need : needs[stage]) {
      if (walk(need, needs, seen, way)) return true;
    }
    way.pop_back();
    seen[stage] = 2;
    return false;
  }

  void tell_cycle(size_t stage, const std::vector<size_t>& way) {
    std::vector<std::string> names;
    for (auto at = std::find(way.begin(), way.end(), stage); at != way.end(); ++at) {
      names.push_back(workflow_.stages[*at].name);
    }
    names.push_back(workflow_.stages[stage].name);
    complain(workflow_.stages[stage], "", text("the stages wait for each other: ", base::join(names, " needs ")),
             "one of them must not read what another of them writes");
  }

  const Workflow& workflow_;
  const Json& document_;
  Problems& problems_;
};

// "inputs[1]" as name and index.
std::pair<std::string, std::optional<size_t>> taken_apart(const std::string& word) {
  const size_t open = word.find('[');
  if (open == std::string::npos || !word.ends_with("]")) return {word, std::nullopt};
  size_t index = 0;
  const char* first = word.data() + open + 1;
  const char* last = word.data() + word.size() - 1;
  const auto [end, error] = std::from_chars(first, last, index);
  if (error != std::errc() || end != last) return {word, std::nullopt};
  return {word.substr(0, open), index};
}

bool is_placeholder_name(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '[' || c == ']';
  });
}

// What stands for a name in braces: one word, or as many as the list has.
std::vector<std::string> values_for(const std::string& name, const PlaceholderValues& values) {
  for (const auto& [number, value] : values.numbers) {
    if (name == number) return {value};
  }
  const auto [list, index] = taken_apart(name);
  const bool inputs = list == "inputs" || list == "input";
  if (inputs || list == "outputs" || list == "output") {
    const auto& all = inputs ? values.inputs : values.outputs;
    const bool one = list == "input" || list == "output";
    if (!one && !index) return all;
    const size_t at = index.value_or(0);
    if (at < all.size()) return {all[at]};
    throw base::Error(base::Blame::user,
                      text("{", name, "}: the stage has ", all.size(), inputs ? " inputs" : " outputs"),
                      text("name it under \"", inputs ? "inputs" : "outputs", "\"; the first is [0]"));
  }
  std::vector<std::string> known{"input", "inputs", "output", "outputs"};
  for (const auto& [number, value] : values.numbers) known.push_back(number);
  throw base::Error(base::Blame::user, text("{", name, "} stands for nothing"), base::did_you_mean(name, known));
}

}  // namespace

std::string stage_path(const std::string& path) {
  const base::Path normal = base::Path(path).lexically_normal();
  return (normal.has_filename() || !normal.has_parent_path() || normal == normal.root_path() ? normal
                                                                                             : normal.parent_path())
      .string();
}

std::vector<std::string> stage_inputs(const Stage& stage) {
  std::vector<std::string> all = stage.inputs;
  all.insert(all.end(), stage.copy.begin(), stage.copy.end());
  return all;
}

std::vector<std::vector<size_t>> stage_needs(const Workflow& workflow) {
  const auto& stages = workflow.stages;
  std::vector<std::vector<size_t>> all(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    for (size_t j = 0; j < stages.size(); ++j) {
      bool needs = std::count(stages[i].after.begin(), stages[i].after.end(), stages[j].name) > 0;
      for (const auto& input : stage_inputs(stages[i])) {
        for (const auto& output : stages[j].outputs) needs |= i != j && overlap(stage_path(input), stage_path(output));
      }
      if (needs) all[i].push_back(j);
    }
  }
  return all;
}

std::vector<size_t> stage_order(const Workflow& workflow) {
  const auto needs = stage_needs(workflow);
  std::vector<size_t> order;
  std::vector<bool> done(needs.size(), false);
  while (order.size() < needs.size()) {
    const size_t before = order.size();
    for (size_t i = 0; i < needs.size(); ++i) {
      if (done[i] || !std::all_of(needs[i].begin(), needs[i].end(), [&](size_t need) { return done[need]; })) continue;
      done[i] = true;
      order.push_back(i);
    }
    base::ensure(order.size() > before, "a checked workflow has no cycle");
  }
  return order;
}

std::vector<std::string> state_paths(const Stage& stage) {
  if (stage.restartable) return stage.state;
  const bool trains = !stage.train.empty();
  if (!stage.goes_on()) return {};
  const std::string found =
      trains ? option_in(fill_placeholders(stage.train, placeholder_values(stage)), "--run") : record_file(stage);
  if (found.empty()) return {};
  if (trains) return {stage_path(found)};
  return {stage_path(found), base::Path(found).replace_extension(".files").lexically_normal().string()};
}

std::string record_file(const Stage& stage) {
  try {
    return option_in(fill_placeholders(stage.predict, placeholder_values(stage)), "--to");
  } catch (const base::Error&) {
    return "";  // check_workflow() says which name in braces means nothing
  }
}

std::vector<std::string> fill_placeholders(const std::vector<std::string>& words, const PlaceholderValues& values) {
  std::vector<std::string> filled;
  for (const auto& word : words) {
    if (word == "{inputs}" || word == "{outputs}") {
      const auto all = values_for(word.substr(1, word.size() - 2), values);
      filled.insert(filled.end(), all.begin(), all.end());
      continue;
    }
    std::string out;
    for (size_t at = 0; at < word.size();) {
      const bool shells = at > 0 && word[at - 1] == '$';  // "${i}" is for a shell
      const size_t close = word[at] == '{' && !shells ? word.find('}', at) : std::string::npos;
      const std::string name = close == std::string::npos ? "" : word.substr(at + 1, close - at - 1);
      if (!is_placeholder_name(name)) {
        out += word[at++];
        continue;
      }
      out += base::join(values_for(name, values), " ");
      at = close + 1;
    }
    filled.push_back(std::move(out));
  }
  return filled;
}

PlaceholderValues placeholder_values(const Stage& stage) {
  const StageResources& resources = stage.resources;
  return {stage.inputs,
          stage.outputs,
          {{"ranks", text(resources.all_ranks())},
           {"nodes", text(resources.nodes)},
           {"cores", text(resources.cores)},
           {"gpus", text(resources.all_gpus())}}};
}

void check_workflow(const Workflow& workflow, const Json& document, Problems& problems) {
  WorkflowCheck(workflow, document, problems).run();
}

}  // namespace lockstep::spec
