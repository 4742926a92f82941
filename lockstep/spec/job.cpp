// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/job.h"

#include "lockstep/spec/fields.h"
#include "lockstep/spec/job_rules.h"
#include "lockstep/spec/override.h"
#include "lockstep/spec/recipe.h"
#include "lockstep/spec/task_sections.h"

namespace lockstep::spec {
namespace {

// Steps are counted in 64 bits: no set of samples has so many epochs that they would not fit.
constexpr double kMostEpochs = 1e6;
constexpr Check kAnyEpochs = between(0, kMostEpochs);
constexpr Check kSomeEpochs{.low = 0, .high = kMostEpochs, .low_open = true};

constexpr Check kThreads = between(0, 4096);

const Section& data_section() {
  static const Section section =
      Table<Data>("data", "which samples, and how they are read")
          .add("train", &Data::train, "", required,
               "folder with one sub-folder of images a class, folder of shards (lockstep prep), or \"synthetic\" with "
               "data.samples")
          .add("validate", &Data::validate, "", anything, "likewise, for validation; empty: no validation")
          .add("test", &Data::test, "", anything, "likewise, for the last evaluation; training never reads it")
          .add("samples", &Data::samples, "samples", non_negative,
               "length of \"synthetic\" data; of a folder what plan counts on where it is not there")
          .add("image_size", &Data::image_size, "pixels", between(1, 16384),
               "what the network sees: a side, or [height, width]")
          .add("augment", &Data::augment, "", anything,
               "none; standard (random crop, flip); with it strong (colour jitter, erasing), rand (RandAugment) or "
               "trivial "
               "(TrivialAugmentWide)")
          .add("crop_scale_min", &Data::crop_scale_min, "share", positive_share,
               "smallest area of an image that the random crop keeps")
          .add("center_crop", &Data::center_crop, "share", positive_share,
               "part of the short side that evaluation keeps")
          .add("flip", &Data::flip, "", anything, "mirror half of the training images")
          .add("mean", &Data::mean, "of 0..1", Check{.length = 3},
               "subtracted from red, green and blue (default: ImageNet's)")
          .add("std", &Data::std, "of 0..1", Check{.low = 0, .low_open = true, .length = 3},
               "red, green and blue are divided by it (default: ImageNet's)")
          .add("on_bad_sample", &Data::on_bad_sample, "", anything,
               "an unreadable image stops the run or is skipped and counted")
          .add("threads", &Data::threads, "threads per rank", kThreads,
               "threads that decode images; 0: chosen from the cores")
          .add("memory", &Data::memory, Type::bytes, positive,
               "what a rank's loaders hold at most: files read ahead, images being decoded, batches; with validation "
               "a "
               "quarter of it is that loader's")
          .add("order", &Data::order, "", anything,
               "full: every sample may stand anywhere; windows: a shard is read in whole extents, these are shuffled "
               "and the samples of data.window of them mixed; by_storage: windows for shards on a network file system")
          .add("balance", &Data::balance, "exponent", share,
               "how often a class is drawn in an epoch of the same length: its number of samples to the power of 1 - "
               "balance; 0: every sample once, 1: every class as often as any other, its samples in turn")
          .add("extent", &Data::extent, Type::bytes, positive, "of windows: how much of a shard is read at once")
          .add(
              "stage", &Data::stage, "", anything,
              "copy shards to this node in the background, once a node: a folder of the node, \"ram\", or \"auto\" for "
              "the temporary folder when the shards lie on a network file system; empty: no copies")
          .add("pixels", &Data::pixels, "", anything,
               "what a batch holds on its way to the device: fp32; bf16 (half the bytes) or uint8 (a quarter, "
               "normalised "
               "there), which on a GPU also go one step ahead of the computing")
          .add("window", &Data::window, "extents", positive, "of windows: how many extents' samples are mixed")
          .done();
  return section;
}

const Section& model_section() {
  static const Section section =
      Table<Model>("model", "which network, and the weights it starts from")
          .add("name", &Model::name, "", required,
               "as torchvision or timm spells it: resnet50, densenet121, vit_base_patch16_224, smallcnn")
          .add("classes", &Model::classes, "classes", non_negative, "outputs of the head; 0: as many as the data has")
          .add("weights", &Model::weights, "", anything,
               "safetensors or .pth file, or folder of a checkpoint, to start from; a head of another class count is "
               "made new; empty: random")
          .add("width", &Model::width, "channels", non_negative,
               "width of the blocks; overrides the architecture's; 0 keeps it")
          .add("depth", &Model::depth, "blocks", non_negative,
               "number of blocks; overrides the architecture's; 0 keeps it")
          .add("heads", &Model::heads, "heads", non_negative,
               "attention heads; overrides the architecture's; 0 keeps it")
          .add("patch", &Model::patch, "pixels", non_negative, "side of a ViT's patch; 0 keeps the architecture's")
          .add("mlp_ratio", &Model::mlp_ratio, "of width", non_negative,
               "hidden width of a ViT's MLP; 0 keeps the architecture's")
          .add("dropout", &Model::dropout, "probability", below_one, "dropout before the head")
          .add("drop_path", &Model::drop_path, "probability", below_one,
               "probability of leaving a residual branch out while training")
          .add("auxiliary_heads", &Model::auxiliary_heads, "", anything, "GoogLeNet's two extra heads while training")
          .add("layout", &Model::layout, "", anything,
               "how images and convolution weights lie in memory: channels_last, or contiguous as PyTorch does unasked "
               "(slower in 16 bit; to compare with what was published)")
          .done();
  return section;
}

const Section& optimizer_section() {
  static const Section section =
      Table<Optimizer>("optimizer", "how gradients move the weights")
          .add("name", &Optimizer::name, "", anything,
               "sgd with momentum; adamw; lars and lamb: the same two with one step length a layer, for large batches; "
               "rmsprop, without momentum")
          .add("lr", &Optimizer::lr, "", positive,
               "learning rate at its peak: for this global batch, or with schedule.scale for schedule.base_batch")
          .add("momentum", &Optimizer::momentum, "", below_one, "momentum of sgd and lars")
          .add("nesterov", &Optimizer::nesterov, "", anything, "Nesterov's momentum, of sgd and lars")
          .add("weight_decay", &Optimizer::weight_decay, "", non_negative,
               "added to the gradient by sgd, lars and rmsprop, to the step by lamb; decoupled in adamw")
          .add("decay_norm_and_bias", &Optimizer::decay_norm_and_bias, "", anything, "decay norms and biases too")
          .add("beta1", &Optimizer::beta1, "", below_one, "of adamw and lamb: memory of the gradient")
          .add("beta2", &Optimizer::beta2, "", below_one, "of adamw, lamb and rmsprop: memory of its square")
          .add("epsilon", &Optimizer::epsilon, "", positive,
               "of adamw, lamb and rmsprop: added to the root of the square; of lars: to the gradient's norm")
          .add("epsilon_in_root", &Optimizer::epsilon_in_root, "", anything,
               "of rmsprop: epsilon is added to the square, below the root, as in Lasagne; false: behind it, as in "
               "PyTorch")
          .add("trust", &Optimizer::trust, "", positive,
               "of lars: a layer's step is this share of its weights' norm, at learning rate 1")
          .add("layer_decay", &Optimizer::layer_decay, "per block", positive_share,
               "a block's rate is this share of that of the block behind it, the head's is the whole rate: for "
               "fine-tuning; 1: all alike")
          .done();
  return section;
}

const Section& schedule_section() {
  static const Section section = Table<Schedule>("schedule", "how the learning rate changes over the run")
                                     .add("name", &Schedule::name, "", anything, "shape of the curve")
                                     .add("scale", &Schedule::scale, "", anything,
                                          "multiplies optimizer.lr by global_batch / base_batch (linear) or its root "
                                          "(sqrt); none: lr is taken as it is")
                                     .add("base_batch", &Schedule::base_batch, "samples", non_negative,
                                          "with scale: the global batch that optimizer.lr was found for")
                                     .add("warmup_epochs", &Schedule::warmup_epochs, "epochs", kAnyEpochs,
                                          "linear rise to the peak before the curve: from 0, with scale from "
                                          "optimizer.lr")
                                     .add("final_lr", &Schedule::final_lr, "", non_negative,
                                          "of cosine, onecycle and polynomial: where the rate ends")
                                     .add("step_epochs", &Schedule::step_epochs, "epochs", kSomeEpochs,
                                          "of step: when the rate is multiplied by gamma")
                                     .add("gamma", &Schedule::gamma, "", positive, "of step: the factor")
                                     .add("power", &Schedule::power, "", positive, "of polynomial: the exponent")
                                     .add("peak_share", &Schedule::peak_share, "share of the run", below_one,
                                          "of onecycle: when the peak is reached")
                                     .add("start_divisor", &Schedule::start_divisor, "", positive,
                                          "of onecycle: the run starts at lr / start_divisor")
                                     .done();
  return section;
}

const Section& phase_section() {
  static const Section section =
      Table<Phase>("phase", "intervals of training with their own set of trained blocks; they stand instead of epochs")
          .add("epochs", &Phase::epochs, "epochs", kSomeEpochs, "length of the phase; the schedule starts over in it")
          .add("train_from", &Phase::train_from, "", anything,
               "first block that is trained: \"head\" or a block's name; empty: all")
          .add("lr_scale", &Phase::lr_scale, "", positive, "multiplies the learning rate in this phase")
          .add("cache_features", &Phase::cache_features, "", anything,
               "run the frozen blocks once per sample, without augmentation, and keep their output")
          .add("cache_flips", &Phase::cache_flips, "", anything,
               "keep the output for each mirrored image too; an epoch takes one of the two at random")
          .add("freeze_norm", &Phase::freeze_norm, "", anything,
               "batch norms keep the statistics of the starting weights, dropout is off: for small data sets")
          .done();
  return section;
}

const Section& early_stop_section() {
  static const Section section =
      Table<EarlyStop>("early_stop", "ends the run when validation gets no better")
          .add("patience", &EarlyStop::patience, "evaluations", non_negative,
               "this many in a row without a better headline figure: the run is finished; 0: off")
          .add("min_delta", &EarlyStop::min_delta, "of the headline", non_negative,
               "better means better by more than this (a top-1 of 0.92 is 0.92 here)")
          .done();
  return section;
}

const Section& training_section() {
  static const Section section =
      Table<Training>("training", "the training itself: batch, length, precision, optimizer, schedule")
          .add("global_batch", &Training::global_batch, "samples", between(1, 1 << 24),
               "samples per optimizer step, all ranks together")
          .add("micro_batch", &Training::micro_batch, "samples per rank", non_negative,
               "samples per rank and pass; smaller ones are accumulated; 0: the rank's whole share at once")
          .add("epochs", &Training::epochs, "epochs", kAnyEpochs, "length of the run, instead of steps or phases")
          .add("steps", &Training::steps, "optimizer steps", non_negative,
               "length of the run, instead of epochs or phases")
          .add("precision", &Training::precision, "", anything,
               "fp32; tf32: fp32 on tensor cores; bf16: 16-bit activations and products; amp: PyTorch's autocast, on "
               "GPUs in "
               "fp16 with a loss scale; weights stay fp32 in all")
          .add("kernels", &Training::kernels, "", anything,
               "what a GPU runs. fused: our own kernels, where they fit (16 bit, channels_last), and from the twelfth "
               "step on one CUDA graph for forward and backward; reference: libtorch's operators one by one. A CPU "
               "has the latter")
          .add("reduce_precision", &Training::reduce_precision, "", anything,
               "of gradients while ranks add them up: bf16 sends half the bytes and rounds each to 8 bits")
          .add("batch_norm", &Training::batch_norm, "", anything,
               "whose samples make a batch norm's statistics: local: this rank's micro-batch; sync: that of all ranks "
               "together; ghost: slices of ghost_batch")
          .add("ghost_batch", &Training::ghost_batch, "samples", non_negative,
               "with batch_norm ghost: samples of a slice; what is left of a rank's share makes a smaller one")
          .add("recompute", &Training::recompute, "blocks", anything,
               "blocks that keep their input only and run again in backward: saves memory, costs time; \"all\" names "
               "all")
          .add("zero", &Training::zero, "", between(0, 3),
               "what each of several ranks keeps only its part of (ZeRO): 0 nothing, 1 optimizer state, 2 gradients "
               "too, 3 weights too; 3 runs every block again in backward (recompute), and communicates half as much "
               "again")
          .nest("optimizer", &Training::optimizer, optimizer_section())
          .nest("schedule", &Training::schedule, schedule_section())
          .list("phases", &Training::phases, phase_section())
          .nest("early_stop", &Training::early_stop, early_stop_section())
          .add("class_balance", &Training::class_balance, "exponent", share,
               "weighs a sample's loss by its class's frequency to the minus this: 0 all alike, 1 every class counts "
               "the same, 0.5 between; the weights are resolved into class_weights")
          .add("class_weights", &Training::class_weights, "", positive,
               "weight of the loss of a class's samples, by the name of the class: {\"cat\": 2}; others have 1. They "
               "are scaled to a mean of 1 over the training samples")
          .add("clip_norm", &Training::clip_norm, "", non_negative, "largest norm of the gradient; 0: no clipping")
          .add("clip_value", &Training::clip_value, "", non_negative,
               "instead: largest magnitude of each element of the gradient; 0: no clipping")
          .add("ema_decay", &Training::ema_decay, "per step", below_one,
               "moving average of the weights, used to evaluate; 0: off")
          .add("label_smoothing", &Training::label_smoothing, "share", below_one,
               "share of the target that is spread over all classes")
          .add(
              "focal_gamma", &Training::focal_gamma, "exponent", non_negative,
              "of task classify: weighs a sample's loss by (1 - probability of its class) to this power, so that those "
              "that are learnt count less (focal loss); 0: plain cross-entropy")
          .add("mixup", &Training::mixup, "alpha", non_negative,
               "blends two samples, by a Beta distribution of this alpha; 0: off")
          .add("cutmix", &Training::cutmix, "alpha", non_negative,
               "pastes a patch of another sample, likewise; with mixup too, each batch draws one")
          .add("auxiliary_weight", &Training::auxiliary_weight, "", non_negative,
               "weight of the auxiliary heads' losses")
          .add("seed", &Training::seed, "", non_negative,
               "seed of weights, order and augmentation: the same seed gives the same bits")
          .add("threads", &Training::threads, "threads per rank", kThreads,
               "threads that compute; 0: cores / ranks, and fewer where others keep cores busy")
          .add("virtual_ranks", &Training::virtual_ranks, "slices", between(0, 65536),
               "cut every batch into so many slices (a power of two), each a pass of its own, and add them up in one "
               "fixed order: the same bits on any number of ranks up to this; 0: off")
          .add("threads_per_slice", &Training::threads_per_slice, "threads", between(1, 4096),
               "with virtual_ranks: threads that compute one slice; other threads, other bits")
          .add("max_nonfinite_steps", &Training::max_nonfinite_steps, "steps", positive,
               "this many steps in a row without a finite loss: the run goes back to its last checkpoint and leaves "
               "the data of those steps out; before its first checkpoint it ends")
          .add("max_rewinds", &Training::max_rewinds, "times", non_negative,
               "how often in a row it may go back without getting beyond that step; then the run ends")
          .add("spike_factor", &Training::spike_factor, "medians", non_negative,
               "a loss above this many medians of the last 64 steps (a gradient norm above its square) sends the run "
               "back likewise, and the state before the first step is saved to have a state to go back to; 0: off")
          .add("check_sync_every", &Training::check_sync_every, "optimizer steps", non_negative,
               "how often the weights of all ranks are compared, and before each save; 0: never")
          .add("replay_every", &Training::replay_every, "optimizer steps", non_negative,
               "how often a step is computed twice and compared bit by bit, to find a faulty machine; 0: never")
          .one_of({"epochs", "steps", "phases"})
          .done();
  return section;
}

const Section& evaluation_section() {
  static const Section section =
      Table<Evaluation>("evaluation", "when and how the network is evaluated while training")
          .add("every_epochs", &Evaluation::every_epochs, "epochs", kAnyEpochs,
               "distance between validations; 0: only at the end")
          .add("every_steps", &Evaluation::every_steps, "optimizer steps", non_negative,
               "the same in steps, instead of every_epochs; 0: every_epochs counts")
          .add("batch", &Evaluation::batch, "samples per rank", non_negative,
               "samples per rank and pass; 0: 32, or global_batch where that is smaller (on a GPU: as in training)")
          .add("views", &Evaluation::views, "", anything,
               "what the network is shown of a sample, whose outputs are averaged: center; flip: and its mirror image "
               "(twice the time); crops: the centre and four corners, each with its mirror image (ten times); in "
               "validation, eval and predict")
          .add("worst", &Evaluation::worst, "samples", between(0, 10000), "worst mistakes kept with their pictures")
          .done();
  return section;
}

const Section& checkpoint_section() {
  static const Section section =
      Table<Checkpoint>("checkpoint", "what is saved while training")
          .add("every_epochs", &Checkpoint::every_epochs, "epochs", kAnyEpochs,
               "distance between checkpoints; 0: by Young's rule, from what a save was measured to cost")
          .add("mean_time_between_failures", &Checkpoint::mean_time_between_failures, Type::duration, positive,
               "of this run on its machine, for Young's rule; 8 hours: a thousand GPUs")
          .add("keep", &Checkpoint::keep, "checkpoints", between(1, 1e6),
               "newest checkpoints kept; the best by validation and the milestones are kept besides")
          .add("milestone_epochs", &Checkpoint::milestone_epochs, "epochs", kAnyEpochs,
               "distance between checkpoints that are never removed; 0: none")
          .done();
  return section;
}

const Section& limits_section() {
  static const Section section = Table<Limits>("limits", "what the run may use")
                                     .add("walltime", &Limits::walltime, Type::duration, non_negative,
                                          "the run saves and stops before this much time is over")
                                     .add("fewer_nodes", &Limits::fewer_nodes, "", anything,
                                          "begin also where ranks start on some of a job's nodes only; false: stop")
                                     .done();
  return section;
}

}  // namespace

const Section& job_section() {
  static const Section section =
      nest_task_sections(Table<Job>("job", "what to train: data, network, schedule")
                             .add("name", &Job::name, "", required, "names the job and its run folder")
                             .add("task", &Job::task, "", anything, "what the network learns to do")
                             .nest("data", &Job::data, data_section())
                             .nest("model", &Job::model, model_section())
                             .nest("training", &Job::training, training_section())
                             .nest("evaluation", &Job::evaluation, evaluation_section())
                             .nest("checkpoint", &Job::checkpoint, checkpoint_section())
                             .nest("limits", &Job::limits, limits_section()))
          .done();
  return section;
}

namespace {

// A Faster R-CNN learns boxes alone: nobody needs to say so a second time.
void imply_boxes_alone(base::Json& document) {
  const base::Json* model = document.find("model");
  if (!model || !model->is_object() || document.string_or("task", "") != name_of(Task::instances)) return;
  if (!model->string_or("name", "").starts_with("fasterrcnn_")) return;
  if (!document.contains("instances")) document["instances"] = base::Json::object();
  base::Json& section = document["instances"];
  if (section.is_object() && !section.contains("masks")) section["masks"] = false;
}

}  // namespace

Job parse_job(const base::Json& document, const std::vector<std::string>& sets) {
  base::Json changed = document;
  apply_sets(job_section(), changed, sets);
  if (changed.is_object()) {
    add_recipe(changed);
    imply_boxes_alone(changed);
  }
  Job job;
  Problems problems;
  read_document(job_section(), &job, changed, problems);
  if (problems.empty()) check_job_rules(job, changed, problems);
  problems.throw_if_any();
  return job;
}

Job load_job(const base::Path& path, const std::vector<std::string>& sets) {
  return parse_job(base::read_json(path), sets);
}

namespace {

base::Json write_job(const Job& job, Which which) {
  base::Json document = write_document(job_section(), &job, which);
  for (const auto& name : choices_of(Task{})) {
    if (name != name_of(job.task) && document.contains(name)) document.erase(name);
  }
  return document;
}

}  // namespace

base::Json to_json(const Job& job) {
  return write_job(job, Which::all);
}

base::Json changed_json(const Job& job) {
  return write_job(job, Which::changed);
}

}  // namespace lockstep::spec
