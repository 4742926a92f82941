// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/collection_command.h"

#include <unistd.h>
#include <optional>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group.h"
#include "lockstep/loader/patient_loader.h"
#include "lockstep/ranks/rank_life.h"
#include "lockstep/ranks/supervisor.h"
#include "lockstep/ranks/worker_slot.h"
#include "lockstep/results/annotations.h"
#include "lockstep/results/coco_form.h"
#include "lockstep/results/terms.h"
#include "lockstep/run/stop.h"
#include "lockstep/site/command.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/load.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/step/device.h"
#include "lockstep/verbs/predict/collection_run.h"
#include "lockstep/verbs/predict/predict.h"

namespace lockstep::verbs::predict {
namespace {

using base::Blame;
using base::Error;
using base::text;
using results::ResultPaths;

ResultPaths paths_of(const base::Arguments& arguments) {
  return {*arguments.value("--to")};
}

double least_score(const base::Arguments& arguments, double otherwise) {
  const auto word = arguments.value("--least");
  if (!word) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), value);
  if (error != std::errc() || end != word->data() + word->size() || !(value >= 0 && value <= 1)) {
    throw Error(Blame::user, text("--least ", *word), "give a number from 0 to 1");
  }
  return value;
}

// Before any work: what can be told to be wrong now must not be told after hours.
void check_forms(const base::Arguments& arguments) {
  if (arguments.has("--explain")) {
    throw Error(Blame::user, "--explain writes no records", "leave out --to FILE.jsonl, or --explain");
  }
  least_score(arguments, 0);
  if (const auto list = arguments.value("--images"); list && !base::is_there(*list)) {
    throw Error(Blame::user, text("--images ", *list, ": there is no such file"), "check the path");
  }
  if (arguments.has("--images") && !arguments.has("--coco")) {
    throw Error(Blame::user, "--images numbers the images of --coco", "add --coco FILE, or leave it out");
  }
  if (const auto concepts = arguments.value("--concepts")) results::read_concepts(*concepts);
  for (const char* option : {"--least", "--source", "--concepts"}) {
    if (arguments.has(option) && !arguments.has("--annotations")) {
      throw Error(Blame::user, text(option, " is for annotations"), "add --annotations FILE, or leave it out");
    }
  }
}

// Each image once, however often it is named.
loader::Collection collection_of(const base::Arguments& arguments, const training::Trained& trained,
                                 std::optional<loader::Collection> listed) {
  loader::Collection all =
      collection_for(trained, {arguments.positional.begin() + 1, arguments.positional.end()}, std::move(listed));
  for (const char* option : {"--pictures", "--coco"}) {
    if (all.main_member.empty() || !arguments.has(option)) continue;
    throw Error(Blame::user, text(option, ": sentences have no pictures"), "leave it out");
  }
  if (all.shards || all.sentences) return all;
  if (arguments.positional.size() == 2 && std::filesystem::is_directory(arguments.positional[1])) {
    all.root = arguments.positional[1];
    return all;
  }
  std::unordered_set<std::string> seen;
  std::erase_if(all.samples, [&](const loader::Sample& sample) { return !seen.insert(sample.path).second; });
  return all;
}

std::string coco_text(const results::CocoSummary& summary, const base::Path& to) {
  std::string words = text(to.string(), ": ", summary.objects, " objects in ", summary.images, " images");
  if (!summary.table.empty()) words += text(", numbered in ", summary.table.string());
  if (summary.unlisted_images > 0) {
    words += text("\n  left out: ", summary.unlisted_images, " images that the list does not have, such as ",
                  summary.unlisted_image);
  }
  if (summary.unlisted_objects > 0) {
    words += text("\n  left out: ", summary.unlisted_objects,
                  " objects of classes that are no category of the list, such as ", summary.unlisted_class);
  }
  return words + "\n";
}

std::string write_forms(const base::Arguments& arguments, const std::vector<std::string>& classes) {
  const ResultPaths paths = paths_of(arguments);
  std::string words;
  if (const auto to = arguments.value("--coco")) {
    words += coco_text(results::write_coco(paths.to, {*to, arguments.value_or("--images", ""), classes}), *to);
  }
  if (const auto to = arguments.value("--annotations")) {
    results::AnnotationOptions options{.to = *to, .source = arguments.value_or("--source", "")};
    options.least = least_score(arguments, options.least);
    if (const auto concepts = arguments.value("--concepts")) options.concepts = results::read_concepts(*concepts);
    const auto summary = results::write_annotations(paths.to, options);
    words += text(*to, ": ", summary.annotations, " annotations of ", summary.images, " images\n");
  }
  return words;
}

void print_end(const CollectionResult& result, const base::Arguments& arguments, const std::string& forms,
               const std::vector<std::string>& words, const char* what) {
  const ResultPaths paths = paths_of(arguments);
  if (!result.finished()) {
    const int64_t done = result.before + result.predicted;
    std::printf("stopped (%s) after %lld of %lld %s, everything is kept in %s\ngo on with: lockstep predict %s\n",
                result.stop_reason.c_str(), static_cast<long long>(done), static_cast<long long>(result.images), what,
                paths.files().c_str(), site::shell_words(words).c_str());
    return;
  }
  const std::string before = result.before > 0 ? text(" (", result.before, " of them done before)") : "";
  std::printf("%s: %lld %s%s, model %s\n", paths.to.c_str(), static_cast<long long>(result.images), what,
              before.c_str(), result.model.c_str());
  if (arguments.has("--pictures")) std::printf("look at them: %s\n", paths.page().c_str());
  std::fputs(forms.c_str(), stdout);
}

int enrich_as_rank(const base::Arguments& arguments, const std::vector<std::string>& words, CollectionOptions& options,
                   const ranks::Rank& rank) {
  comm::Group& group = rank.group;
  base::Progress progress(base::progress_for_stderr());
  auto listed = plain_images({arguments.positional.begin() + 1, arguments.positional.end()});
  options.device = step::open_device(arguments.value_or("--device", "cpu"), comm::locality().rank);
  const training::Trained trained =
      training::load_trained({arguments.positional.front(), arguments.value_or("--job", ""), arguments.values("--set"),
                              options.device, arguments.value_or("--weights", "")});
  const std::string fewer_threads = training::use_threads(trained.job);
  if (group.rank() == 0) {
    for (const auto& note : trained.notes) progress.print(note);
    if (!trained.which.empty()) progress.print("weights: " + trained.which);
    if (!fewer_threads.empty()) progress.print(fewer_threads);
    options.show = [&](std::string_view line) { progress.show(line); };
    if (const auto left = site::seconds_left()) options.seconds_left = static_cast<double>(left->count());
  }
  const loader::Collection collection = collection_of(arguments, trained, std::move(listed));
  const char* what = collection.main_member.empty() ? "images" : "sentences";
  const TrustedAnswers trusted(trained, trust_options(arguments));
  const auto ensemble = load_ensemble(trusted.options().ensemble, trained, options.device);
  options.trusted = &trusted;
  const auto columns = columns_for(arguments, trained, collection, [&](const std::string& note) {
    if (group.rank() == 0) progress.print(note);
  });
  options.columns = columns.get();
  if (!ensemble.empty()) options.ensemble = &ensemble;
  if (group.rank() == 0 && !trusted.note().empty()) progress.print("note: " + trusted.note());
  int64_t batches = 0;
  options.got_on = [&](int64_t) {
    rank.activity->enter(run::Phase::evaluating);
    rank.activity->step_done(++batches);
  };
  const CollectionResult result = predict_into(trained, collection, options, group);
  progress.end();
  if (group.rank() == 0) {
    const std::string forms =
        result.finished() ? write_forms(arguments, trained.task->told_classes(trained.classes)) : "";
    if (!base::give_json(arguments, result.to_json())) print_end(result, arguments, forms, words, what);
    if (result.finished() && result.failed == result.images) {
      throw Error(Blame::user, text("none of the ", result.failed, " ", what, " could be read"),
                  text("the reasons stand in ", options.to.string()));
    }
    if (result.failed > 0) {
      std::fprintf(stderr, "%lld of %lld %s could not be read; the reasons stand in %s\n",
                   static_cast<long long>(result.failed), static_cast<long long>(result.images), what,
                   options.to.c_str());
    }
  }
  group.barrier();
  return result.finished() ? base::kExitDone : base::kExitRequeue;
}

int enrich_here(const base::Arguments& arguments, const std::vector<std::string>& words) {
  const base::Path files = paths_of(arguments).files();
  // Of several ranks the first speaks, unless their supervisor does.
  const bool speaks = !ranks::my_worker_slot(files) && site::read_launch().rank == 0;
  const run::StopSignals signals(speaks ? run::Acknowledge::on_stderr : run::Acknowledge::silently);
  CollectionOptions options;
  options.to = paths_of(arguments).to;
  options.pictures = arguments.has("--pictures");
  const char* restarts = std::getenv(ranks::kRestartVariable);
  options.again = arguments.has("--again") && (!restarts || std::atoi(restarts) == 0);  // once
  options.top = arguments.int_or("--top", options.top);
  options.stop = [&] { return ranks::stop_reason(signals.name(), files); };
  const int code = ranks::work_as_rank(files, comm::join_group, [&](const ranks::Rank& rank) {
    return enrich_as_rank(arguments, words, options, rank);
  });
  if (loader::left_threads_behind()) {  // all is kept, and a thread still hangs in a read
    std::fflush(nullptr);
    ::_exit(code);
  }
  return code;
}

int supervise_enrichment(const base::Arguments& arguments, const std::vector<std::string>& words, int64_t ranks) {
  site::pass_busy_cores_on();
  ranks::Supervision order;
  order.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "predict"};
  order.command.insert(order.command.end(), words.begin(), words.end());
  order.run = paths_of(arguments).files();
  order.ranks = ranks;
  order.goes_on = "behind record ";
  order.say = [](const std::string& line) {
    std::fprintf(stderr, "%s%s\n", line[0] == '+' ? "" : "supervisor: ", line.c_str());
  };
  return ranks::supervise(order);
}

}  // namespace

void refuse_collection_options(const base::Arguments& arguments) {
  for (const char* option :
       {"--pictures", "--again", "--coco", "--images", "--annotations", "--least", "--source", "--concepts"}) {
    if (arguments.has(option)) {
      throw Error(Blame::user, text(option, " is for collections"), "add --to FILE.jsonl");
    }
  }
}

int predict_collection_command(const base::Arguments& arguments, const std::vector<std::string>& words) {
  check_forms(arguments);
  const int64_t ranks = ranks::ranks_asked(arguments);
  return ranks::run_on_ranks({.ranks = ranks,
                              .run = paths_of(arguments).files(),
                              .watch = [&] { return supervise_enrichment(arguments, words, ranks); },
                              .work = [&] { return enrich_here(arguments, words); }});
}

}  // namespace lockstep::verbs::predict
