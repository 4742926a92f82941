// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/group.h"
#include "lockstep/ranks/plain_ranks.h"
#include "lockstep/step/device.h"
#include "lockstep/verbs/predict/collection_command.h"
#include "lockstep/verbs/predict/predict.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::predict {
namespace {

const base::CommandLine& predict_line_of_words() {
  static const base::CommandLine line{
      "predict",
      "RUN IMAGE|FOLDER|LIST...",
      "what a trained network sees in images, and in whole collections of them",
      {{"--top", "N", "of a classifier: classes per image, most probable first (default 5)"},
       {"--to", "FILE",
        "write a table instead of the text: FILE.csv (without --top a column for each class), or a record for each "
        "image: FILE.jsonl, which goes on where it was stopped or killed"},
       {"--columns", "LIST",
        "CSV of path, year, place, ...: by which instances.context weighs the classes of an image"},
       {"--pictures", "", "with FILE.jsonl: an overlay of each image, and the contact-sheet page FILE.html"},
       {"--coco", "FILE", "with FILE.jsonl: the objects as COCO has results"},
       {"--images", "LIST", "of --coco: a COCO list whose numbers of images and categories it takes"},
       {"--annotations", "FILE", "with FILE.jsonl: the answers as W3C Web Annotations"},
       {"--least", "P", "of --annotations: score from which on an answer is given (default 0.5)"},
       {"--source", "PREFIX", "of --annotations: put before the path of each image, https://example.org/"},
       {"--concepts", "CSV", "of --annotations: columns class, iri: what a class is called elsewhere"},
       {"--again", "", "with FILE.jsonl: give up the records that are there and begin again"},
       {"--coverage", "C", "of a calibrated run: the set of classes that holds the right one with this probability"},
       {"--sets", "HOW", "of --coverage: lac (default, the smallest), or aps (as good for hard images)"},
       {"--abstain", "RISK", "of a calibrated run: no answer where more than this share of answers would be wrong"},
       {"--unusual", "RATE", "of a calibrated run: mark images unlike the known ones; so many known ones are, too"},
       {"--score", "NAME", "of --unusual: energy (default); mahalanobis or neighbour: of a run with features"},
       {"--nearest", "N", "of a run with features: the training images that look most alike"},
       {"--explain", "FOLDER", "write heat maps over the images: what each answer rests on"},
       {"--heat", "KIND", "of --explain: grad_cam, rollout or occlusion (default: what fits the network)"},
       {"--ensemble", "RUN", "the mean of this run too, again for each: RUN, or RUN@WEIGHTS"},
       {"--job", "JOB", "for weights outside a run folder"},
       {"--weights", "WHICH", "of a run: best (default where it has validation), last, or a step with a checkpoint"},
       {"--set", "KEY=VALUE", "override a key of the job"},
       {"--ranks", "N", "share the work over N ranks on this machine, with mpirun; the order stays"},
       {"--device", "NAME", "cpu (default) or cuda"},
       {"--json", "FILE", "write the result as JSON (- = standard output, without the text)"}},
      "RUN is a run folder, a version of a store (STORE/NAME:TAG) or a weights file; a folder stands for all .jpg, "
      ".jpeg,\n"
      ".png, .webp, .tif and .tiff files below it.\n"
      "A run of task text takes sentences: the lines of a .txt, or a table (.csv, .tsv, .json, .jsonl) with a column\n"
      "'sentence', 'text' or 'caption'.\n"
      "An image that cannot be read is reported and counted; only when all of them fail, the exit code is 2.\n"
      "Confidences are calibrated where `lockstep eval RUN --calibrate` was run.\n"
      "examples: lockstep predict runs/pets cat.jpg --coverage 0.95 --abstain 0.02 --explain heat\n"
      "          lockstep predict runs/pets photos --to photos.csv\n"
      "          lockstep predict runs/pets collection --to found.jsonl --pictures --ranks 8\n"
      "          lockstep predict quickstart/run quickstart/shapes/validate/star --top 1"};
  return line;
}

// Text goes out while the network works, so that a long folder can be followed and cut short.
void speak(const Prediction& prediction, const training::Trained& trained) {
  std::FILE* out = prediction.failed() ? stderr : stdout;
  std::fputs((predict_line(prediction, trained) + "\n").c_str(), out);
}

int predict_as_rank(const base::Arguments& arguments, const ranks::Rank& rank) {
  PredictOptions options;
  options.top = arguments.int_or("--top", 5);
  const auto table = arguments.value("--to");
  const bool has_all = table && !arguments.has("--top");
  const std::vector<std::string> paths(arguments.positional.begin() + 1, arguments.positional.end());
  auto listed = plain_images(paths);
  options.device = step::open_device(arguments.value_or("--device", "cpu"), comm::locality().rank);
  const training::Trained trained =
      training::load_trained({arguments.positional.front(), arguments.value_or("--job", ""), arguments.values("--set"),
                              options.device, arguments.value_or("--weights", "")});
  const std::string fewer_threads = training::use_threads(trained.job);
  if (rank.group.rank() == 0) {
    for (const auto& note : trained.notes) std::fprintf(stderr, "%s\n", note.c_str());
    if (!trained.which.empty()) std::fprintf(stderr, "weights: %s\n", trained.which.c_str());
    if (!fewer_threads.empty()) std::fprintf(stderr, "%s\n", fewer_threads.c_str());
  }
  const auto images = collection_for(trained, paths, std::move(listed));
  if (has_all) options.top = trained.task->num_outputs();
  const TrustedAnswers trusted(trained, trust_options(arguments));
  const auto ensemble = load_ensemble(trusted.options().ensemble, trained, options.device);
  options.trusted = &trusted;
  const auto columns = columns_for(arguments, trained, images, [&](const std::string& note) {
    if (rank.group.rank() == 0) std::fprintf(stderr, "%s\n", note.c_str());
  });
  options.columns = columns.get();
  if (!ensemble.empty()) options.ensemble = &ensemble;
  if (rank.group.rank() == 0 && !trusted.note().empty()) std::fprintf(stderr, "note: %s\n", trusted.note().c_str());
  if (arguments.value("--json") != "-" && !table)
    options.each = [&](const Prediction& prediction) { speak(prediction, trained); };
  int64_t batches = 0;
  options.got_on = [&] {
    rank.activity->enter(run::Phase::evaluating);
    rank.activity->step_done(++batches);
  };
  const auto predictions = predict_collection(trained, images, options, rank.group);
  if (rank.group.rank() != 0) return 0;
  const base::Json result = predict_json(predictions);
  base::give_json(arguments, result);
  if (table) {
    base::write_file(*table, predict_csv(predictions, *trained.task, has_all ? 0 : options.top, trusted.columns()));
    for (const auto& prediction : predictions) {
      if (prediction.failed()) speak(prediction, trained);
    }
    if (arguments.value("--json") != "-")
      std::printf("%s: %zu %s\n", table->c_str(), predictions.size(),
                  images.main_member.empty() ? "images" : "sentences");
  }
  const int64_t failed = result.at("failed").as_int();
  if (const base::Path& folder = trusted.options().explain; !folder.empty()) {
    std::fprintf(stderr, "%zu heat maps in %s\n", predictions.size() - static_cast<size_t>(failed), folder.c_str());
  }
  const char* what = images.main_member.empty() ? "images" : "sentences";
  if (failed == static_cast<int64_t>(predictions.size())) {
    throw base::Error(base::Blame::user, base::text("none of the ", failed, " ", what, " could be read"));
  }
  if (failed > 0) std::fprintf(stderr, "%ld of %zu %s could not be read\n", failed, predictions.size(), what);
  return 0;
}

}  // namespace

LOCKSTEP_VERB(predict)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(predict_line_of_words(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(predict_line_of_words()).c_str(), stdout), 0;
  if (arguments.positional.size() < 2) {
    throw base::Error(base::Blame::user, "a run folder and at least one image or folder are expected", "see --help");
  }
  if (arguments.int_or("--top", 5) < 1) throw base::Error(base::Blame::user, "--top must be at least 1");
  const auto to = arguments.value("--to");
  if (to && table_format(*to) == TableFormat::jsonl) return predict_collection_command(arguments, words);
  refuse_collection_options(arguments);
  return ranks::share_over_ranks("predict", arguments, words, comm::join_group,
                                 [&](const ranks::Rank& rank) { return predict_as_rank(arguments, rank); });
}

}  // namespace lockstep::verbs::predict
