// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/job_rules.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <functional>
#include <utility>

#include "lockstep/base/text.h"

namespace lockstep::spec {
namespace {

class JobRules {
 public:
  JobRules(const Job& job, const base::Json& document, Problems& problems)
      : job_(job), document_(document), problems_(problems) {}

  void check() {
    check_name();
    check_task();
    check_instances();
    check_nowcast();
    check_text();
    check_data();
    check_training();
    check_virtual_ranks();
    check_schedule();
    check_phases();
    check_classes();
    check_early_stop();
  }

 private:
  void complain(const std::string& key, const std::string& what, const std::string& fix) {
    problems_.add(locate(document_, key), key, what, fix);
  }

  void check_name() {
    const auto good = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
    };
    if (std::all_of(job_.name.begin(), job_.name.end(), good) && job_.name[0] != '.') return;
    complain("name", base::text("'", job_.name, "' cannot name a folder"), "use letters, digits, '-', '_' and '.'");
  }

  // Each task has its own section; one of another task would be passed over in silence.
  void check_task() {
    for (const auto& name : choices_of(Task{})) {
      if (name == name_of(job_.task) || !document_.contains(name)) continue;
      complain(name, base::text("belongs to task ", name, ", this job has task ", name_of(job_.task)),
               base::text("remove it, or \"task\": \"", name, "\""));
    }
    const bool has_places = job_.task == Task::detect || job_.task == Task::segment || job_.task == Task::caption;
    if (has_places) check_places();
    if (has_places || job_.task == Task::instances) check_augment();
    if (job_.task == Task::segment) check_segment();
    if (job_.task == Task::caption) refuse_cached_features("each epoch draws one of an image's captions");
  }

  void refuse_cached_features(const char* reason) {
    for (size_t i = 0; i < job_.training.phases.size(); ++i) {
      if (!job_.training.phases[i].cache_features) continue;
      complain(base::text("training.phases[", i, "].cache_features"), reason, "leave it out");
    }
  }

  // Of a task that says where something is: another view of the image needs another answer.
  void check_places() {
    if (job_.evaluation.views != Views::center) {
      complain("evaluation.views",
               base::text("what lies where on several views of an image cannot be averaged (",
                          name_of(job_.evaluation.views), ")"),
               "\"views\": \"center\"");
    }
    for (size_t i = 0; i < job_.training.phases.size(); ++i) {
      if (!job_.training.phases[i].cache_flips) continue;
      complain(base::text("training.phases[", i, "].cache_flips"), "what is on a mirrored image lies elsewhere",
               "leave it out");
    }
    if (job_.task == Task::detect && job_.detect.classes.empty()) {
      complain("detect.classes", "nothing is looked for", R"(name it: "detect": {"classes": ["Car", "Van"]})");
    }
  }

  void check_segment() {
    const Segment& segment = job_.segment;
    const auto count = segment.classes.size();
    if (!segment.values.empty() && segment.values.size() != count) {
      complain("segment.values", base::text("has ", segment.values.size(), ", and segment.classes ", count),
               "give each class the value of its pixels");
    }
    if (segment.pixels == LabelPixels::objects && count > 0) {
      complain("segment.classes", "objects have the classes of the data", "leave it out, or \"pixels\": \"labels\"");
    }
    if (count == 1 || count > 255) {
      complain("segment.classes", base::text("has ", count), "2 to 255, the background among them");
    }
    const auto ignored = static_cast<double>(segment.ignore);
    const bool by_number = segment.values.empty() && segment.ignore < static_cast<int64_t>(count);
    if (by_number || std::find(segment.values.begin(), segment.values.end(), ignored) != segment.values.end()) {
      complain("segment.ignore", base::text("is ", segment.ignore, ", the value of a class"), "for example 255");
    }
  }

  void check_instances() {
    const bool with_masks = job_.model.name.starts_with("maskrcnn_");
    const bool finds = with_masks || job_.model.name.starts_with("fasterrcnn_");
    if (finds != (job_.task == Task::instances)) {
      complain(finds ? "task" : "model.name",
               base::text("is ", finds ? name_of(job_.task) : job_.model.name, ", and ",
                          finds ? job_.model.name : "task instances", finds ? " finds objects" : " needs a detector"),
               finds ? "\"task\": \"instances\"" : "\"name\": \"maskrcnn_resnet50_fpn\"");
      return;
    }
    if (!finds) return;
    if (job_.instances.scale_min > job_.instances.scale_max) {
      complain("instances.scale_min",
               base::text("is ", job_.instances.scale_min, ", more than scale_max, ", job_.instances.scale_max),
               "exchange the two");
    }
    check_canvases();
    if (with_masks != job_.instances.masks) {
      complain("instances.masks",
               base::text("is ", with_masks ? "false" : "true", ", and ", job_.model.name, " learns ",
                          with_masks ? "masks" : "boxes alone"),
               with_masks ? "\"name\": \"fasterrcnn_...\", or leave it out" : "\"masks\": false");
    }
    if (job_.evaluation.views != Views::center) {
      complain("evaluation.views", "detections of several views cannot be averaged", "leave it out");
    }
    refuse_cached_features("maps for objects are too large to keep, and their samples change with the boxes");
  }

  void check_nowcast() {
    const bool forecasts = job_.model.name == "convlstm" || job_.model.name == "rainnet";
    if (forecasts != (job_.task == Task::nowcast)) {
      complain(forecasts ? "task" : "model.name",
               base::text("is ", forecasts ? name_of(job_.task) : job_.model.name, ", and ",
                          forecasts ? job_.model.name + " forecasts frames" : "task nowcast needs a forecaster"),
               forecasts ? "\"task\": \"nowcast\"" : "\"name\": \"convlstm\" or \"rainnet\"");
      return;
    }
    if (!forecasts) return;
    const Nowcast& how = job_.nowcast;
    for (const auto& [key, side] :
         {std::pair("nowcast.input_kernel", how.input_kernel), std::pair("nowcast.state_kernel", how.state_kernel)}) {
      if (side % 2 == 0) complain(key, base::text("is ", side, ", which has no centre"), base::text(side + 1));
    }
    const auto is_whole = [](double number) { return number == std::floor(number); };
    if (!std::all_of(how.widths.begin(), how.widths.end(), is_whole)) {
      complain("nowcast.widths", "channels are counted in whole numbers", "for example [64, 64]");
    }
    if (!std::all_of(how.scales.begin(), how.scales.end(), is_whole)) {
      complain("nowcast.scales", "pixels are counted in whole numbers", "for example [5, 11]");
    }
    if (how.widths.empty()) complain("nowcast.widths", "names no layer", "for example [64, 64]");
    if (how.thresholds.empty()) complain("nowcast.thresholds", "names no rain rate", "for example [0.5, 2, 5]");
    if (!std::is_sorted(how.thresholds.begin(), how.thresholds.end(), std::less_equal<>())) {
      complain("nowcast.thresholds", "must increase", "for example [0.5, 2, 5]");
    }
    if (job_.training.precision == Precision::amp && job_.model.name == "convlstm") {
      complain("training.precision", "is amp, and a ConvLSTM chooses the types of its states itself",
               "fp32, tf32 or bf16");
    }
    if (job_.evaluation.views != Views::center) {
      complain("evaluation.views", "forecasts of several views cannot be averaged", "leave it out");
    }
    if (job_.data.augment == Augment::rand || job_.data.augment == Augment::trivial ||
        job_.data.augment == Augment::strong) {
      complain("data.augment", base::text("is ", name_of(job_.data.augment), ", which changes colours"),
               "none, or standard (half of the sequences are mirrored)");
    }
    refuse_cached_features("states of sequences are too large to keep");
  }

  void check_text() {
    const bool reads = job_.model.name == "hashed_linear";
    if (reads != (job_.task == Task::text)) {
      complain(reads ? "task" : "model.name",
               base::text("is ", reads ? name_of(job_.task) : job_.model.name, ", and ",
                          reads ? job_.model.name + " reads sentences" : "task text needs a network that reads"),
               reads ? "\"task\": \"text\"" : "\"name\": \"hashed_linear\"");
      return;
    }
    if (!reads) return;
    if (job_.text.longest > 0 && job_.text.shortest > job_.text.longest) {
      complain("text.shortest", base::text("is ", job_.text.shortest, ", more than text.longest, ", job_.text.longest),
               "exchange the two, or text.longest=0 for words alone");
    }
    if (job_.evaluation.views != Views::center) {
      complain("evaluation.views", "a sentence has one view", "leave it out");
    }
    refuse_cached_features("a sentence is read faster than its features");
  }

  void check_canvases() {
    constexpr int64_t kStride = 32;  // of a detector's coarsest map
    const ImageSize& whole = job_.data.image_size;
    for (size_t i = 0; i < job_.instances.canvases.size(); ++i) {
      const std::string& text = job_.instances.canvases[i];
      const std::string key = base::text("instances.canvases[", i, "]");
      const auto size = image_size_from(text);
      if (!size) {
        complain(key, base::text("\"", text, "\" is no size"), "\"HEIGHTxWIDTH\" in pixels, such as \"800x1088\"");
      } else if (size->height % kStride != 0 || size->width % kStride != 0) {
        complain(key, base::text(text, " is no multiple of ", kStride, " each way"), "such as \"800x1088\"");
      } else if (size->height > whole.height || size->width > whole.width || *size == whole) {
        complain(key, base::text(text, " is no part of data.image_size, ", to_text(whole)),
                 "data.image_size is the canvas that every image fits on: make it larger, or leave this one out");
      }
    }
    if (!job_.instances.canvases.empty() && job_.data.order == SampleOrder::windows) {
      complain("data.order", "is windows, and instances.canvases put samples of one shape into a batch",
               "\"order\": \"full\", or no canvases");
    }
  }

  // Of a task that learns where objects are.
  void check_augment() {
    if (job_.data.augment == Augment::rand || job_.data.augment == Augment::trivial) {
      complain(
          "data.augment",
          base::text("is ", name_of(job_.data.augment), ", which would move the image away from what is known of it"),
          "none, standard or strong");
    }
  }

  void check_data() {
    const bool synthetic = job_.data.train == "synthetic";
    if (synthetic && job_.data.samples == 0) {
      complain("data.train", "\"synthetic\" data need a length", "give data.samples");
    }
    const bool counts = job_.task == Task::classify || job_.task == Task::instances || job_.task == Task::caption ||
                        job_.task == Task::text || (job_.task == Task::segment && job_.segment.classes.empty());
    if (synthetic && counts && job_.model.classes == 0) {
      complain("data.train", "\"synthetic\" data have no class folders to count", "give model.classes");
    }
  }

  void check_training() {
    const Training& training = job_.training;
    if (training.micro_batch > training.global_batch) {
      complain("training.micro_batch",
               base::text("is ", training.micro_batch, ", more than training.global_batch, ", training.global_batch),
               "make it smaller, or 0");
    }
    if (training.zero > 1 && training.batch_norm == BatchNorm::sync) {
      complain("training.batch_norm",
               base::text("is sync, and training.zero ", training.zero, " lets ranks take passes without samples"),
               "training.zero=1, or \"batch_norm\": \"local\"");
    }
    if (training.zero > 1 && training.reduce_precision != ReducePrecision::fp32) {
      complain("training.reduce_precision", base::text("is bf16, and training.zero ", training.zero, " sums in fp32"),
               "training.zero=1, or \"reduce_precision\": \"fp32\"");
    }
    if (training.zero == 3 && training.ema_decay > 0) {
      complain("training.zero",
               "is 3: no rank has whole weights for the moving average of training.ema_decay to follow",
               "training.zero=2, or training.ema_decay=0");
    }
    if (training.optimizer.nesterov &&
        ((training.optimizer.name != OptimizerName::sgd && training.optimizer.name != OptimizerName::lars) ||
         training.optimizer.momentum == 0)) {
      complain("training.optimizer.nesterov", "needs sgd or lars with momentum",
               "\"name\": \"sgd\", \"momentum\": 0.9");
    }
    if (training.optimizer.epsilon_in_root && training.optimizer.name != OptimizerName::rmsprop) {
      complain("training.optimizer.epsilon_in_root", "is of rmsprop alone", "\"name\": \"rmsprop\", or leave it out");
    }
    if (training.optimizer.trust != Optimizer().trust && training.optimizer.name != OptimizerName::lars) {
      complain("training.optimizer.trust", "is of lars alone", "\"name\": \"lars\", or leave trust out");
    }
    if (training.clip_norm > 0 && training.clip_value > 0) {
      complain("training.clip_value",
               "stands there beside training.clip_norm, and a gradient is clipped by one of them",
               "keep one of the two");
    }
    check_batch_norm();
  }

  void check_batch_norm() {
    const Training& training = job_.training;
    const int64_t slice = training.ghost_batch;
    if (training.batch_norm != BatchNorm::ghost) {
      if (slice > 0) {
        complain("training.ghost_batch", base::text("is ", slice, ", but training.batch_norm is not ghost"),
                 "\"batch_norm\": \"ghost\", or leave ghost_batch out");
      }
      return;
    }
    const int64_t most = training.micro_batch > 0 ? training.micro_batch : training.global_batch;
    const char* of = training.micro_batch > 0 ? "training.micro_batch" : "training.global_batch";
    if (slice == 0) {
      complain("training.batch_norm", "ghost needs the size of its slices", "for example \"ghost_batch\": 32");
    } else if (slice > most) {
      complain("training.ghost_batch", base::text("is ", slice, ", more than ", of, ", ", most),
               base::text("give ", most, " at most"));
    }
  }

  void check_virtual_ranks() {
    const Training& training = job_.training;
    const int64_t slices = training.virtual_ranks;
    if (slices == 0) return;
    const std::string key = "training.virtual_ranks";
    const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(slices)));
    if (below != slices) {
      complain(key, base::text("is ", slices, ", no power of two"), base::text("use ", below, " or ", 2 * below));
    } else if (slices > training.global_batch) {
      complain(key, base::text("is ", slices, ", more slices than training.global_batch has samples"),
               base::text("use ", std::bit_floor(static_cast<uint64_t>(training.global_batch)), " or fewer"));
    }
    if (training.micro_batch > 0) {
      complain("training.micro_batch", "with virtual_ranks the slices are the micro-batches",
               "leave it out; more virtual_ranks make smaller slices");
    }
    if (training.reduce_precision == ReducePrecision::bf16) {
      complain("training.reduce_precision", "is bf16, but virtual_ranks exchange their partial sums whole",
               "leave one of the two out");
    }
    if (training.batch_norm == BatchNorm::sync) {
      complain("training.batch_norm", "is sync, which would undo the slices of virtual_ranks",
               "\"batch_norm\": \"local\": a slice has its own statistics");
    }
    if (training.zero > 1) {
      complain("training.zero", base::text("is ", training.zero, ": virtual_ranks add up whole gradients in one order"),
               "training.zero=1 cuts the optimizer's state and keeps the bits");
    }
    refuse_cached_features("the bits of cached features depend on the ranks, those of virtual_ranks shall not");
  }

  void check_schedule() {
    const Schedule& schedule = job_.training.schedule;
    if (job_.training.epochs > 0) check_warmup(job_.training.epochs, "the run");
    if (schedule.scale != RateRule::none && schedule.base_batch == 0) {
      complain("training.schedule.scale",
               base::text("the ", name_of(schedule.scale), " rule needs the batch that optimizer.lr was found for"),
               "for example \"base_batch\": 256");
    }
    if (schedule.scale == RateRule::none && schedule.base_batch > 0) {
      complain("training.schedule.base_batch", "stands there without a rule", "\"scale\": \"linear\" or \"sqrt\"");
    }
    const auto& at = schedule.step_epochs;
    if (schedule.name == ScheduleName::step && at.empty()) {
      complain("training.schedule.name", "the step schedule has no steps", "give step_epochs, e.g. [30, 60, 80]");
    }
    if (!std::is_sorted(at.begin(), at.end(), std::less_equal<>())) {
      complain("training.schedule.step_epochs", "must increase", "for example [30, 60, 80]");
    }
    if (job_.training.epochs > 0 && !at.empty() && at.back() >= job_.training.epochs) {
      complain("training.schedule.step_epochs", base::text("ends after the run of ", job_.training.epochs, " epochs"),
               "name epochs before the end");
    }
  }

  void check_warmup(double epochs, const std::string& what) {
    const double warmup = job_.training.schedule.warmup_epochs;
    if (warmup == 0 || warmup < epochs) return;
    complain("training.schedule.warmup_epochs",
             base::text("is ", warmup, ", not shorter than ", what, " of ", epochs, " epochs"), "make it shorter");
  }

  void check_phases() {
    const auto& phases = job_.training.phases;
    for (size_t i = 0; i < phases.size(); ++i) {
      const std::string key = base::text("training.phases[", i, "]");
      check_warmup(phases[i].epochs, key);
      if (phases[i].cache_features && phases[i].train_from.empty()) {
        complain(key + ".cache_features", "without train_from nothing is frozen", "\"train_from\": \"head\"");
      }
      if (phases[i].cache_flips && !phases[i].cache_features) {
        complain(key + ".cache_flips", "there are no cached features to mirror", "\"cache_features\": true");
      }
      if (phases[i].freeze_norm && job_.model.name == "googlenet" && job_.model.auxiliary_heads) {
        complain(key + ".freeze_norm", "leaves auxiliary heads without a gradient", "\"auxiliary_heads\": false");
      }
    }
  }

  void check_classes() {
    for (const auto& [name, weight] : job_.training.class_weights) {
      if (weight > 0) continue;
      complain("training.class_weights", base::text("'", name, "' weighs ", weight, ", not more than 0"),
               "leave the class's samples out of data.train, or give it a small weight");
    }
    check_balance();
    if (job_.task == Task::classify) return;
    // The loss of another task would pass over each of these in silence.
    const auto refuse = [&](const char* key) {
      complain(key, base::text("is of task classify, this job has task ", name_of(job_.task)), "leave it out");
    };
    const Training& training = job_.training;
    if (training.mixup > 0) refuse("training.mixup");
    if (training.cutmix > 0) refuse("training.cutmix");
    if (job_.task == Task::text) return;  // its loss is that of classify
    if (training.class_balance > 0) refuse("training.class_balance");
    if (!training.class_weights.empty() && job_.task != Task::segment) refuse("training.class_weights");
    if (training.focal_gamma > 0) refuse("training.focal_gamma");
    if (training.label_smoothing > 0) refuse("training.label_smoothing");
    if (job_.model.name == "googlenet" && job_.model.auxiliary_heads) {
      complain("model.auxiliary_heads", base::text("task ", name_of(job_.task), " has no loss for them"),
               "\"auxiliary_heads\": false");
    }
  }

  void check_balance() {
    if (job_.data.balance == 0) return;
    const bool has_classes = job_.task == Task::classify || job_.task == Task::ordinal || job_.task == Task::text;
    if (!has_classes) {  // the others' samples have no class, or several
      complain("data.balance",
               base::text("is of tasks classify, ordinal and text, this job has task ", name_of(job_.task)),
               "leave it out");
    }
    if (job_.training.class_balance > 0) {
      complain("training.class_balance", "weighs rare classes in the loss, and data.balance draws them more often",
               "leave one of the two out");
    }
    if (job_.data.order == SampleOrder::windows) {
      complain("data.order", "windows read a shard in its order, and data.balance draws from all of them",
               "\"order\": \"full\", or leave it out");
    }
  }

  void check_early_stop() {
    const EarlyStop& early = job_.training.early_stop;
    if (early.patience > 0 && job_.data.validate.empty()) {
      complain("training.early_stop.patience", "there is no validation to get better or not", "give data.validate");
    }
    if (early.patience == 0 && early.min_delta > 0) {
      complain("training.early_stop.min_delta", "stands there without patience", "for example \"patience\": 5");
    }
  }

  const Job& job_;
  const base::Json& document_;
  Problems& problems_;
};

}  // namespace

void check_job_rules(const Job& job, const base::Json& document, Problems& problems) {
  JobRules(job, document, problems).check();
}

}  // namespace lockstep::spec
