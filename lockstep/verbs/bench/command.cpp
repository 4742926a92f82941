// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/site/manners.h"
#include "lockstep/verbs/bench/bench_command.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::bench {
namespace {

using base::text;

struct Bench {
  const char* name;
  const char* summary;
  verbs::Entry* entry;
};

constexpr Bench kBenches[] = {
#define BENCH(name, summary) {#name, summary, &bench_command_##name},
#include "lockstep/verbs/bench/benches.def"
#undef BENCH
};

void print_benches() {
  std::printf("lockstep bench: measures, and says beside what\n\nusage: lockstep bench <what> [arguments]\n\n");
  for (const auto& bench : kBenches) std::printf("  %-10s %s\n", bench.name, bench.summary);
  std::printf(
      "\nlockstep bench <what> --help says more; each takes --json FILE (- = standard output)\n"
      "examples: lockstep bench step --model smallcnn --image-size 32 --batch 16 --rounds 2\n");
}

}  // namespace

void say_progress(std::string_view line) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

base::Json synthetic_job(const base::Arguments& arguments, int64_t batch, int64_t pixels) {
  base::Json document = base::Json::object();
  document["name"] = "bench";
  document["data"]["train"] = "synthetic";
  document["data"]["samples"] = 1000;
  document["data"]["image_size"] = arguments.int_or("--image-size", pixels);
  document["model"]["name"] = arguments.value_or("--model", "resnet18");
  document["model"]["classes"] = 1000;
  document["training"]["global_batch"] = arguments.int_or("--batch", batch);
  document["training"]["steps"] = 1;
  document["training"]["precision"] = arguments.value_or("--precision", "fp32");
  document["training"]["optimizer"]["name"] = arguments.value_or("--optimizer", "sgd");
  return document;
}

std::string bench_line(const std::string& name, const std::vector<std::string>& words) {
  return text("lockstep bench ", name, words.empty() ? "" : " ", base::shell_words(words));
}

void refuse_bench_on_login_node(const std::string& name, const std::vector<std::string>& words,
                                const base::Arguments& arguments) {
  std::vector<std::string> all{name};
  all.insert(all.end(), words.begin(), words.end());
  site::refuse_on_login_node("bench", all, arguments.has("--here"));
}

LOCKSTEP_VERB(bench)(const std::vector<std::string>& words) {
  const std::string what = words.empty() ? "" : words[0];
  if (what == "--help" || what == "-h") return print_benches(), base::kExitDone;
  std::vector<std::string> names;
  for (const auto& bench : kBenches) {
    if (what == bench.name) return bench.entry({words.begin() + 1, words.end()});
    names.emplace_back(bench.name);
  }
  if (what.empty() || what[0] == '-') {
    throw base::Error(base::Blame::user, "bench what?", text("known: ", base::join(names, ", "), "; see --help"));
  }
  throw base::Error(base::Blame::user, text("there is no bench '", what, "'"), base::did_you_mean(what, names));
}

}  // namespace lockstep::verbs::bench
