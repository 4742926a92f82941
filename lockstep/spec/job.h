// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/choice.h"
#include "lockstep/spec/image_size.h"

namespace lockstep::spec {

struct Section;  // fields.h

// The job document: what to train. Plain values; job.cpp declares each field once (unit, check, help), the defaults
// stand here. Enumerators are spelt exactly as in JSON; name_of() gives that spelling.

LOCKSTEP_CHOICE(Task, classify, regress, multilabel, ordinal, detect, instances, nowcast, segment, caption, text)
// strong = standard + colour jitter + erasing; rand = standard + RandAugment; trivial = standard + TrivialAugmentWide
LOCKSTEP_CHOICE(Augment, none, standard, strong, rand, trivial)
LOCKSTEP_CHOICE(OnBadSample, stop, skip)
// full = every sample anywhere; windows = whole extents of a shard, shuffled, and the samples of a few of them mixed
LOCKSTEP_CHOICE(SampleOrder, by_storage, full, windows)
LOCKSTEP_CHOICE(Pixels, fp32, bf16, uint8)  // uint8: normalised on the device
LOCKSTEP_CHOICE(Precision, fp32, tf32, bf16, amp)
LOCKSTEP_CHOICE(Layout, channels_last, contiguous)
LOCKSTEP_CHOICE(OptimizerName, sgd, adamw, lars, lamb, rmsprop)
LOCKSTEP_CHOICE(ScheduleName, constant, step, cosine, onecycle, polynomial)
LOCKSTEP_CHOICE(RateRule, none, linear, sqrt)
LOCKSTEP_CHOICE(BatchNorm, local, sync, ghost)
LOCKSTEP_CHOICE(ReducePrecision, fp32, bf16)
LOCKSTEP_CHOICE(Kernels, fused, reference)  // fused: our own, on GPUs; reference: libtorch's
// What an evaluation shows the network of a sample: center = one view; flip = its mirror image too; crops = the centre
// and the four corners, each with its mirror image
LOCKSTEP_CHOICE(Views, center, flip, crops)
// How boxes are scored: kitti = its three levels, car at IoU 0.7; coco = mean over IoU 0.5 to 0.95
LOCKSTEP_CHOICE(Protocol, kitti, coco)
// What a pixel of a label image says: the label of its class, or the number of an object, which has the class
LOCKSTEP_CHOICE(LabelPixels, labels, objects)
// Which anchors and regions of an image are learnt from: drawn, or the first ones (to compare with other programs)
LOCKSTEP_CHOICE(Sampler, random, first)
// What a forecast pays for a pixel that is off by d: mse = d^2; mae = |d|; weighted = both, more where it rains harder;
// log_cosh = ln cosh d
LOCKSTEP_CHOICE(ForecastLoss, mse, mae, weighted, log_cosh)

struct Data {
  std::string train;     // folder with one sub-folder a class, or "synthetic"
  std::string validate;  // likewise; empty: no validation
  std::string test;
  int64_t samples = 0;  // length of "synthetic"; of a folder: what plan counts on where the folder is not
  ImageSize image_size = 224;
  Augment augment = Augment::standard;
  double crop_scale_min = 0.35;  // smallest area of RandomResizedCrop
  double center_crop = 0.875;    // share of the short side that evaluation keeps
  bool flip = true;
  std::vector<double> mean = {0.485, 0.456, 0.406};
  std::vector<double> std = {0.229, 0.224, 0.225};
  OnBadSample on_bad_sample = OnBadSample::stop;
  int64_t threads = 0;                // decode threads per rank; 0: chosen from the cores
  int64_t memory = int64_t{4} << 30;  // bytes a rank's loaders hold at most
  SampleOrder order = SampleOrder::by_storage;
  double balance = 0;                 // how much more often rare classes are drawn; 1: every class alike
  int64_t extent = int64_t{8} << 20;  // of windows: bytes that are read at once
  int64_t window = 16;                // of windows: extents whose samples are mixed
  std::string stage;                  // folder on this node, "ram" or "auto"; empty: none
  Pixels pixels = Pixels::fp32;       // what a batch holds on its way to the device

  bool operator==(const Data&) const = default;
};

struct Model {
  std::string name;
  int64_t classes = 0;  // 0: as many as the training data has
  std::string weights;  // safetensors or .pth to start from; a head of another class count is made new
  // Overrides of the named architecture; 0 keeps the architecture's own.
  int64_t width = 0;
  int64_t depth = 0;
  int64_t heads = 0;
  int64_t patch = 0;
  double mlp_ratio = 0;
  double dropout = 0;
  double drop_path = 0;
  bool auxiliary_heads = true;  // GoogLeNet
  Layout layout = Layout::channels_last;

  bool operator==(const Model&) const = default;
};

struct Optimizer {
  OptimizerName name = OptimizerName::sgd;
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  bool decay_norm_and_bias = false;  // false: norms and biases are not decayed
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool epsilon_in_root = false;  // rmsprop: sqrt(square + epsilon), as Lasagne and Keras once had it
  double trust = 1e-3;           // lars
  double layer_decay = 1;        // rate of a block as a share of that of the block behind it; the head has all of it

  bool operator==(const Optimizer&) const = default;
};

struct Schedule {
  ScheduleName name = ScheduleName::cosine;
  RateRule scale = RateRule::none;  // how optimizer.lr, found for base_batch, grows with global_batch
  int64_t base_batch = 0;           // with a rule only
  double warmup_epochs = 0;
  double final_lr = 0;                   // cosine, onecycle, polynomial: where the rate ends
  std::vector<double> step_epochs = {};  // step: when the rate is multiplied by gamma
  double gamma = 0.1;
  double power = 1;           // polynomial
  double peak_share = 0.3;    // onecycle: share of the run at which the peak is reached
  double start_divisor = 25;  // onecycle: the run starts at lr / start_divisor

  bool operator==(const Schedule&) const = default;
};

// An interval of training with its own set of trained blocks (the transfer-learning recipe). The schedule starts over
// in each phase, with lr * lr_scale. Without phases the whole network is trained for `epochs`.
struct Phase {
  double epochs = 1;
  std::string train_from;  // first block that is trained: "head", a block's name; empty: all
  double lr_scale = 1;
  bool cache_features = false;  // frozen blocks run once per sample (no augmentation), their output is kept
  bool cache_flips = false;     // and that of each mirrored image; an epoch takes one of the two
  bool freeze_norm = false;     // batch norms keep the statistics of the starting weights, dropout is off

  bool operator==(const Phase&) const = default;
};

struct EarlyStop {
  int64_t patience = 0;  // evaluations in a row without a better headline, then the run ends; 0: never
  double min_delta = 0;  // a headline counts as better when it is better by more than this

  bool operator==(const EarlyStop&) const = default;
};

struct Training {
  int64_t global_batch = 32;  // samples per optimizer step, all ranks together
  int64_t micro_batch = 0;    // samples per rank and pass; 0: the whole share of the rank at once
  double epochs = 0;          // epochs or steps
  int64_t steps = 0;
  Precision precision = Precision::fp32;
  Kernels kernels = Kernels::fused;                          // of a GPU; a CPU has libtorch's alone
  ReducePrecision reduce_precision = ReducePrecision::fp32;  // of gradients on their way between ranks
  BatchNorm batch_norm = BatchNorm::local;                   // whose rows make the statistics of a pass
  int64_t ghost_batch = 0;                                   // ghost: rows of a slice
  std::vector<std::string> recompute = {};  // blocks whose activations are computed again in backward, or "all"
  int64_t zero = 0;  // what is cut over the ranks: 1 optimizer state, 2 gradients too, 3 weights too
  Optimizer optimizer;
  Schedule schedule;
  std::vector<Phase> phases = {};
  EarlyStop early_stop;
  double class_balance = 0;                                        // exponent of a class's inverse frequency
  std::vector<std::pair<std::string, double>> class_weights = {};  // by class name; those left out: 1
  double clip_norm = 0;                                            // 0: no clipping
  double clip_value = 0;                                           // likewise, of each element
  double ema_decay = 0;                                            // 0: no moving average of the weights
  double label_smoothing = 0;
  double focal_gamma = 0;         // exponent of the focal loss; 0: cross-entropy
  double mixup = 0;               // alpha of the Beta distribution; 0: off
  double cutmix = 0;              // likewise; with both, each batch draws one of the two
  double auxiliary_weight = 0.3;  // weight of auxiliary heads' losses
  int64_t seed = 1;
  int64_t threads = 0;              // compute threads per rank; 0: cores / ranks
  int64_t virtual_ranks = 0;        // slices of every batch, added up in one fixed order; 0: plain data parallel
  int64_t threads_per_slice = 1;    // with virtual_ranks: part of what decides the bits
  int64_t max_nonfinite_steps = 3;  // that many steps in a row without a finite loss: back to the last checkpoint
  int64_t max_rewinds = 3;          // that many times in a row without getting beyond that step; then it ends
  double spike_factor = 0;          // a loss of this many medians: back likewise; 0: off
  int64_t check_sync_every = 100;   // steps between comparisons of the weights on all ranks; 0: never
  int64_t replay_every = 0;         // steps between those that are computed twice and compared; 0: never

  bool operator==(const Training&) const = default;
};

struct Evaluation {
  double every_epochs = 1;
  int64_t every_steps = 0;  // instead of every_epochs; 0: those count
  int64_t batch = 0;        // samples per rank and pass; 0: as in training
  Views views = Views::center;
  int64_t worst = 24;  // mistakes kept with their pictures

  bool operator==(const Evaluation&) const = default;
};

struct Checkpoint {
  double every_epochs = 0;                        // 0: by Young's rule, from the measured cost of a save
  double mean_time_between_failures = 8 * 3600.;  // seconds; what Young's rule needs besides
  int64_t keep = 2;                               // newest ones kept; the best and the milestones are kept besides
  double milestone_epochs = 0;                    // distance of those that are never removed; 0: none

  bool operator==(const Checkpoint&) const = default;
};

struct Limits {
  double walltime = 0;       // seconds; written "48:00:00"; 0: none
  bool fewer_nodes = false;  // begin also when ranks start on some nodes of the job only

  bool operator==(const Limits&) const = default;
};

struct Regress {
  std::string value = "value";  // the key of the number in a sample's .json

  bool operator==(const Regress&) const = default;
};

struct Multilabel {
  std::vector<std::string> classes = {};  // by output of the network
  std::string labels = "labels";          // the key of a sample's labels in its .json; absent there: a key per class
  double threshold = 0.5;                 // probability from which on a label counts as given

  bool operator==(const Multilabel&) const = default;
};

// FastBox. The numbers are KittiBox's.
struct Detect {
  std::vector<std::string> classes = {"Car", "Van"};  // found as one; the first is the name, and what is scored
  Protocol protocol = Protocol::kitti;
  double box_weight = 0.1;  // of everything but the first confidence
  double delta_weight = 0.03;
  double focus = 1.8;      // cells that a box's centre may lie off the cell that answers for it, in each direction
  double nms_iou = 0.35;   // more overlap than this with a surer box: left out
  double threshold = 0.5;  // confidence from which on a box is told in a prediction

  bool operator==(const Detect&) const = default;
};

// Objects in images, with boxes and masks: what the samples hold, and the sizes of a Faster or Mask R-CNN. All of them
// are fixed: what an image has less of stays empty, what it has more of is left out. The defaults are torchvision's.
struct Instances {
  int64_t slots = 100;      // objects of an image
  bool masks = true;        // false: boxes alone
  int64_t mask_size = 112;  // cells of an object's mask in each direction
  int64_t min_size = 800;   // pixels of an image's short side,
  int64_t max_size = 1333;  // unless the long one would get longer
  std::vector<std::string> canvases =
      {};                              // smaller ones than data.image_size for batches of images that fit: "800x1088"
  int64_t proposals = 2000;            // while training: of each level before, of an image after suppression
  int64_t evaluated_proposals = 1000;  // likewise while evaluating
  int64_t anchor_samples = 256;        // anchors of an image that are learnt from, at most half of them on objects
  int64_t roi_slots = 512;             // regions that are, at most a quarter of them on objects (and with masks)
  int64_t detections = 100;            // of an image
  double score_threshold = 0.05;
  double nms_iou = 0.5;  // detections of one class that overlap a surer one by more are left out
  Sampler sampler = Sampler::random;
  double scale_min = 1;  // training shows an image this much
  double scale_max = 1;  // to this much larger; what outgrows the canvas is cut off
  std::string context;   // table of class pairs and weights that changes the scores; empty: none
  double context_strength = 1;

  int64_t mask_slots() const { return roi_slots / 4; }  // regions on objects
  bool operator==(const Instances&) const = default;
};

// Radar frames to the frames that follow. The defaults are those of Shi et al. 2017 (HKO-7), but for the sizes.
struct Nowcast {
  int64_t inputs = 5;    // frames that are seen
  int64_t outputs = 12;  // frames that are forecast
  double minutes = 5;    // from one frame to the next
  ForecastLoss loss = ForecastLoss::weighted;
  std::vector<double> widths = {64, 64};  // of a ConvLSTM: channels of each layer, whole numbers
  int64_t input_kernel = 3;               // of a ConvLSTM: of the convolution of what comes in,
  int64_t state_kernel = 3;               // and of the state
  bool recompute_steps = false;  // of a ConvLSTM: keep the states alone, and compute the gates again in backward
  std::vector<double> thresholds = {0.5, 2, 5, 10, 30};  // mm/h at which a forecast is scored
  std::vector<double> scales = {5, 11};                  // pixels of the neighbourhoods of the fractions skill score
  double zr_factor = 200;                                // of Z = a R^b: a,
  double zr_exponent = 1.6;                              // b (Marshall and Palmer)
  bool flow = true;                                      // an evaluation scores optical flow beside

  int64_t frames() const { return inputs + outputs; }
  bool operator==(const Nowcast&) const = default;
};

// The class of every pixel.
struct Segment {
  LabelPixels pixels = LabelPixels::labels;
  std::vector<std::string> classes = {};  // by label; empty: those of the data
  std::vector<double> values = {};        // of a label image's pixels, by label; empty: 0, 1, 2, ...
  int64_t ignore = 255;                   // a pixel of this value has no class
  double dice = 0;                        // weight of the Dice loss beside the cross-entropy's 1

  bool operator==(const Segment&) const = default;
};

// A sentence for an image, word by word. The numbers are those of common soft-attention captioners.
struct Caption {
  int64_t length = 20;    // words, the end included; longer captions are cut
  int64_t min_count = 5;  // a word of the vocabulary stands this often in the training captions
  int64_t embedding = 512;
  int64_t hidden = 512;     // of the LSTM
  int64_t attention = 512;  // of the layer that scores places
  double coverage = 1;      // weight of looking at every place alike over a caption
  int64_t beam = 3;

  bool operator==(const Caption&) const = default;
};

// Whether a sentence is a caption, or of which class it is. The n-grams are those with which a linear model does best
// on real captions.
struct Text {
  int64_t words = 2;          // of the longest n-gram of words
  int64_t shortest = 3;       // n-gram of characters within a word,
  int64_t longest = 5;        // 0: none
  int64_t buckets = 65536;    // that n-grams are hashed into
  int64_t slots = 512;        // n-grams of a sentence; those behind are cut
  std::string positive = {};  // the class that is looked for; empty: "caption" where there is one, else the last

  bool operator==(const Text&) const = default;
};

struct Job {
  std::string name;
  Task task = Task::classify;
  Data data;
  Model model;
  Training training;
  Evaluation evaluation;
  Checkpoint checkpoint;
  Limits limits;
  Regress regress;        // of task regress
  Multilabel multilabel;  // of task multilabel
  Detect detect;          // of task detect
  Instances instances;    // of task instances
  Nowcast nowcast;        // of task nowcast
  Segment segment;        // of task segment
  Caption caption;        // of task caption
  Text text;              // of task text

  bool operator==(const Job&) const = default;
};

// Reads, overrides and checks a job document. `sets` are the words behind --set: "training.global_batch=512",
// "training.phases[0].epochs=3"; the value is JSON, or else a string. A job that starts from weights and states no
// recipe gets that of recipe.h. User error that names file, line, column, key, reason and fix of every problem found.
Job load_job(const base::Path& path, const std::vector<std::string>& sets = {});
Job parse_job(const base::Json& document, const std::vector<std::string>& sets = {});

// Every field, defaults included; parse_job gives an equal job back.
base::Json to_json(const Job& job);
// Only the fields that differ from their defaults: the shortest document that means the same job.
base::Json changed_json(const Job& job);

const Section& job_section();  // the table of its fields

}  // namespace lockstep::spec
