// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <exception>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group.h"
#include "lockstep/ranks/plain_ranks.h"
#include "lockstep/step/device.h"
#include "lockstep/verbs/eval/eval.h"
#include "lockstep/verbs/eval/score_files.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::eval {
namespace {

using base::Blame;
using base::Error;

constexpr uint64_t kLargestFile = uint64_t{16} << 30;

const base::CommandLine& eval_line() {
  static const base::CommandLine line{
      "eval",
      "RUN",
      "how good a trained network is, on data it has not seen",
      {{"--data", "FOLDER", "shards, or one sub-folder a class; or validate (default), test, train: those of the job"},
       {"--job", "JOB", "for weights outside a run folder"},
       {"--weights", "WHICH", "of a run: best (default where it has validation), last, or a step with a checkpoint"},
       {"--set", "KEY=VALUE", "override a key of the job, e.g. data.image_size=96"},
       {"--calibrate", "",
        "fit temperature and thresholds on a half of the images, report on the other, and keep them with the run"},
       {"--features", "", "with --calibrate: keep features of the training images, for unusual and nearest images"},
       {"--by", "COLUMN", "figures for each value of this column of the samples' .json, with intervals"},
       {"--leakage", "", "look for the images among the training images: the same file, or nearly the same picture"},
       {"--explain", "", "heat maps over the worst mistakes: what the answers rest on"},
       {"--ranks", "N", "share the work over N ranks on this machine, with mpirun, and watch over them"},
       {"--device", "NAME", "cpu (default) or cuda"},
       {"--coco", "FILE", "instead of a run: score --detections against this list, as pycocotools does"},
       {"--kitti", "FOLDER", "instead of a run: score --detections against these labels, as KITTI's own program does"},
       {"--detections", "PATH", "a COCO result file, or a folder of KITTI result files"},
       {"--iou", "WHAT", "with --coco: bbox (default) or segm, boxes or masks"},
       {"--json", "FILE", "write the result as JSON (- = standard output, without the text)"}},
      "RUN is a run folder, whose eval.json and eval/ (worst mistakes as pictures) are written for `lockstep report`,\n"
      "or a weights file. Works under mpirun and srun too: every sample once, the same figures on any ranks.\n"
      "Result files of any program are scored without a run: --coco or --kitti, with --detections.\n"
      "examples: lockstep eval runs/pets --data data/pets/test --json -\n"
      "          lockstep eval --coco instances_val2017.json --detections results.json --iou segm\n"
      "          lockstep eval --kitti training/label_2 --detections results/data\n"
      "          lockstep eval runs/pets --calibrate --features --explain\n"
      "          lockstep eval quickstart/run"};
  return line;
}

int evaluate_as_rank(const base::Arguments& arguments, EvalOptions options, const ranks::Rank& rank) {
  const base::Path source = arguments.only("run folder or weights file");
  const bool speaks = rank.group.rank() == 0;
  const training::Trained trained =
      training::load_trained({source, arguments.value_or("--job", ""), arguments.values("--set"), options.device,
                              arguments.value_or("--weights", "")});
  const std::string fewer_threads = training::use_threads(trained.job);
  base::Progress progress(base::progress_for_stderr());
  if (speaks) {
    if (!fewer_threads.empty()) progress.print(fewer_threads);
    for (const auto& note : trained.notes) progress.print(note);
  }
  int64_t batches = 0;
  options.seen = [&](int64_t done, int64_t all) {
    rank.activity->enter(run::Phase::evaluating);
    rank.activity->step_done(++batches);
    if (speaks) progress.show(base::text(done, "/", all, " images"));
  };
  const EvalResult result = evaluate_trained(trained, options, rank.group);
  if (!speaks) return 0;
  progress.end();
  base::give(arguments, eval_json(result, trained), eval_text(result, trained));
  for (const auto& note : result.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  if (trained.run.empty()) return 0;
  save_trust(result, trained);
  std::fflush(stdout);  // the figures, before what is said of them
  try {
    save_evaluation(result, trained);
  } catch (const std::exception& error) {  // what was asked for is there: a run may be somebody else's
    std::fprintf(stderr, "note: %s/eval.json was not written, `lockstep report` will not show this evaluation: %s\n",
                 trained.run.c_str(), error.what());
    return 0;
  }
  if (arguments.value("--json") != "-") {
    const std::string folder = trained.run.string();
    std::printf("\nwrote %s/eval.json and %zu pictures of the worst mistakes in %s/eval; next: lockstep report %s\n",
                folder.c_str(), result.paths.size(), folder.c_str(), base::shell_path(folder).c_str());
  }
  return 0;
}

// The results that `how` (--coco, --kitti) scores. What belongs to a run or to the other one is refused.
std::string detections_for(const base::Arguments& arguments, const std::string& how) {
  if (!arguments.positional.empty())
    throw Error(Blame::user, base::text(how, " scores result files, and no run"), "leave out the run folder");
  for (const std::string option : {"--data", "--job", "--weights", "--set", "--calibrate", "--features", "--by",
                                   "--leakage", "--explain", "--ranks", "--device", "--coco", "--iou"}) {
    const bool belongs = how == "--coco" && (option == "--coco" || option == "--iou");
    if (arguments.has(option) && !belongs)
      throw Error(Blame::user, base::text(option, " has no meaning with ", how), base::text("leave out ", option));
  }
  if (const auto detections = arguments.value("--detections")) return *detections;
  throw Error(Blame::user, base::text(how, " needs the results that are to be scored"), "--detections PATH");
}

int score_kitti_files(const base::Arguments& arguments) {
  const std::string detections = detections_for(arguments, "--kitti");
  const auto evaluation = sources::score_kitti(*arguments.value("--kitti"), detections);
  base::give(arguments, kitti_json(evaluation), kitti_text(evaluation));
  return 0;
}

int score_coco_files(const base::Arguments& arguments) {
  const std::string detections = detections_for(arguments, "--coco"), truth = *arguments.value("--coco");
  const std::string what = arguments.value_or("--iou", "bbox");
  if (what != "bbox" && what != "segm")
    throw Error(Blame::user, base::text("--iou is '", what, "'"), "bbox: boxes; segm: masks");
  const task::CocoIou iou = what == "bbox" ? task::CocoIou::bbox : task::CocoIou::segm;
  const std::string list = base::read_file(truth, kLargestFile), results = base::read_file(detections, kLargestFile);
  const auto evaluation = sources::score_coco({list, truth}, {results, detections}, iou);
  base::give(arguments, coco_json(evaluation, iou), coco_text(evaluation, iou));
  return 0;
}

}  // namespace

LOCKSTEP_VERB(eval)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(eval_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(eval_line()).c_str(), stdout), 0;
  if (arguments.has("--kitti")) return score_kitti_files(arguments);
  if (arguments.has("--coco")) return score_coco_files(arguments);
  for (const char* option : {"--detections", "--iou"})
    if (arguments.has(option))
      throw Error(Blame::user, base::text(option, " is for result files"), "with --coco FILE or --kitti FOLDER");
  arguments.only("run folder or weights file");
  EvalOptions options;
  options.data = arguments.value_or("--data", "validate");
  options.trust.calibrate = arguments.has("--calibrate");
  options.trust.features = arguments.has("--features");
  options.trust.leakage = arguments.has("--leakage");
  options.trust.explain = arguments.has("--explain");
  options.trust.by = arguments.value_or("--by", "");
  const auto join = [&] {
    options.device = step::open_device(arguments.value_or("--device", "cpu"), comm::locality().rank);
    return comm::join_group();
  };
  return ranks::share_over_ranks("eval", arguments, words, join,
                                 [&](const ranks::Rank& rank) { return evaluate_as_rank(arguments, options, rank); });
}

}  // namespace lockstep::verbs::eval
