// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/task_sections.h"

namespace lockstep::spec {
namespace {

const Section& regress_section() {
  static const Section section =
      Table<Regress>("regress", "task regress: a number per image")
          .add("value", &Regress::value, "", anything, "key of the number in each sample's .json")
          .done();
  return section;
}

const Section& multilabel_section() {
  static const Section section =
      Table<Multilabel>("multilabel", "task multilabel: any number of classes per image")
          .add("classes", &Multilabel::classes, "names", anything, "what an image may show, by output of the network")
          .add("labels", &Multilabel::labels, "", anything,
               "key of the labels in each sample's .json: \"cat|dog\", \"cat;dog\" or a list; where it is absent, each "
               "class is a key with 0 or 1")
          .add("threshold", &Multilabel::threshold, "share", share, "probability from which on a label counts as given")
          .done();
  return section;
}

const Section& detect_section() {
  static const Section section =
      Table<Detect>("detect", "task detect: boxes around the objects of one kind (FastBox)")
          .add(
              "classes", &Detect::classes, "names", anything,
              "classes of the data that are looked for, as one; found boxes get the name of the first, which is scored")
          .add("protocol", &Detect::protocol, "", anything,
               "how an evaluation scores: kitti: easy, moderate and hard by height, occlusion and truncation; coco: AP "
               "and AP50 of all objects, for data without these")
          .add("box_weight", &Detect::box_weight, "", non_negative,
               "weight of the box's error and of the second look, beside the confidence's 1")
          .add("delta_weight", &Detect::delta_weight, "", non_negative,
               "weight of the corrected box's squared error, times box_weight")
          .add("focus", &Detect::focus, "cells", positive,
               "how far a box's centre may lie from that of a cell of 32 pixels which answers for it")
          .add("nms_iou", &Detect::nms_iou, "share", share,
               "a box that overlaps a surer one by more is taken for the same object")
          .add("threshold", &Detect::threshold, "share", share, "confidence from which on a prediction tells a box")
          .done();
  return section;
}

const Section& instances_section() {
  static const Section section =
      Table<Instances>("instances", "task instances: objects with boxes and masks (Faster and Mask R-CNN)")
          .add("slots", &Instances::slots, "objects", between(1, 10000), "of an image; further ones are left out")
          .add("masks", &Instances::masks, "", anything,
               "learn the objects' masks too (maskrcnn_...); false: boxes alone, which fasterrcnn_... implies")
          .add("mask_size", &Instances::mask_size, "cells", between(7, 512),
               "of an object's mask in each direction; a larger object has its mask scaled down to this")
          .add("min_size", &Instances::min_size, "pixels", between(1, 16384),
               "length of an image's short side; never beyond data.image_size, which is the canvas")
          .add("max_size", &Instances::max_size, "pixels", between(1, 16384),
               "most of the long side: where it would be more, the image is made smaller")
          .add("canvases", &Instances::canvases, "pixels", anything,
               "smaller canvases than data.image_size, each \"HEIGHTxWIDTH\": while training, images that fit on one "
               "of them share batches of that size; shards tell their sizes")
          .add("proposals", &Instances::proposals, "regions", between(1, 100000),
               "while training: of each level of the pyramid before, of an image after the suppression of repetitions")
          .add("evaluated_proposals", &Instances::evaluated_proposals, "regions", between(1, 100000),
               "likewise while evaluating")
          .add("anchor_samples", &Instances::anchor_samples, "anchors", between(2, 100000),
               "of an image that are learnt from, at most half of them on objects")
          .add("roi_slots", &Instances::roi_slots, "regions", between(4, 100000),
               "of an image that are learnt from, at most a quarter of them on objects; these learn masks")
          .add("detections", &Instances::detections, "objects", between(1, 10000), "told of an image at most")
          .add("score_threshold", &Instances::score_threshold, "share", share,
               "detections with a lower score are not told")
          .add("nms_iou", &Instances::nms_iou, "share", share,
               "a detection that overlaps a surer one of its class by more is left out")
          .add("sampler", &Instances::sampler, "", anything,
               "which anchors and regions are learnt from: random; or the first, to compare with other programs")
          .add("scale_min", &Instances::scale_min, "factor", between(0.01, 10),
               "training multiplies an image's size by a random factor between this")
          .add("scale_max", &Instances::scale_max, "factor", between(0.01, 10),
               "and this; of an image that outgrows the canvas a random part is shown")
          .add("context", &Instances::context, "", anything,
               "CSV of class,beside,weight: how much likelier two classes are on one image than by chance (prep writes "
               "train/pairs.csv), or class,COLUMN=VALUE,weight: how much likelier a class is on images of a year or "
               "place (train/columns.csv); scores of detections are changed by it; empty: none")
          .add("context_strength", &Instances::context_strength, "factor", non_negative, "of that change; 0: none")
          .done();
  return section;
}

const Section& nowcast_section() {
  static const Section section =
      Table<Nowcast>("nowcast", "task nowcast: radar frames to the frames that follow")
          .add("inputs", &Nowcast::inputs, "frames", between(1, 256), "frames that the network sees")
          .add("outputs", &Nowcast::outputs, "frames", between(1, 256), "frames that it forecasts")
          .add("minutes", &Nowcast::minutes, "minutes", positive, "from one frame to the next")
          .add("loss", &Nowcast::loss, "", anything,
               "mean over the pixels of: mse, the squared error d^2; mae, |d|; weighted, d^2 + |d| times 1, 2, 5, 10, "
               "30 "
               "where it rains 0, 2, 5, 10, 30 mm/h; log_cosh")
          .add("widths", &Nowcast::widths, "channels", positive, "of a ConvLSTM: channels of each layer, first to last")
          .add("input_kernel", &Nowcast::input_kernel, "pixels", between(1, 31),
               "of a ConvLSTM: side of the convolution of what comes in; odd")
          .add("state_kernel", &Nowcast::state_kernel, "pixels", between(1, 31),
               "of a ConvLSTM: side of the convolution of the state; odd")
          .add("recompute_steps", &Nowcast::recompute_steps, "", anything,
               "of a ConvLSTM: keep the states of each time step alone and compute its gates again in backward: less "
               "memory, one forward more")
          .add("thresholds", &Nowcast::thresholds, "mm/h", positive, "rain rates at which a forecast is scored")
          .add("scales", &Nowcast::scales, "pixels", positive,
               "sides of the neighbourhoods of the fractions skill score")
          .add("zr_factor", &Nowcast::zr_factor, "", positive, "a of Z = a R^b, reflectivity to rain rate")
          .add("zr_exponent", &Nowcast::zr_exponent, "", positive, "b of Z = a R^b")
          .add("flow", &Nowcast::flow, "", anything, "an evaluation scores optical flow beside the network")
          .done();
  return section;
}

const Section& segment_section() {
  static const Section section =
      Table<Segment>("segment", "task segment: the class of every pixel")
          .add("pixels", &Segment::pixels, "", anything,
               "what the label image (seg.png) of a sample holds: labels; or objects: the numbers of the objects in "
               "its .json (prep --masks of COCO), whose classes follow behind background")
          .add("classes", &Segment::classes, "names", anything, "by label; empty: those of the data")
          .add("values", &Segment::values, "of 0..255", between(0, 255),
               "of a label image's pixels, by label; empty: 0, 1, 2, ...")
          .add("ignore", &Segment::ignore, "of 0..255", between(0, 255),
               "pixels of this value have no class: no part in loss and score")
          .add("dice", &Segment::dice, "weight", non_negative,
               "of the Dice loss, of each image and over its classes, beside the cross-entropy's 1; 0: off")
          .done();
  return section;
}

const Section& caption_section() {
  static const Section section =
      Table<Caption>("caption", "task caption: a sentence for an image, by an LSTM with soft attention")
          .add("length", &Caption::length, "words", between(2, 1000),
               "of a caption, its end included; longer ones are cut")
          .add("min_count", &Caption::min_count, "times", positive,
               "words that stand less often in the training captions are <unk>")
          .add("embedding", &Caption::embedding, "numbers", between(1, 65536), "that stand for a word")
          .add("hidden", &Caption::hidden, "numbers", between(1, 65536), "width of the LSTM")
          .add("attention", &Caption::attention, "numbers", between(1, 65536),
               "width of the layer that scores the places of the image")
          .add("coverage", &Caption::coverage, "weight", non_negative,
               "of the loss by which every place is looked at alike over a caption (mean over the places)")
          .add("beam", &Caption::beam, "captions", between(1, 64), "followed at once while one is searched")
          .done();
  return section;
}

const Section& text_section() {
  static const Section section =
      Table<Text>("text", "task text: whether a sentence is a caption, by its hashed n-grams")
          .add("words", &Text::words, "words", between(1, 5), "of the longest n-gram of words")
          .add("shortest", &Text::shortest, "characters", between(1, 10), "of the shortest n-gram within a word")
          .add("longest", &Text::longest, "characters", between(0, 10),
               "of the longest n-gram within a word; 0: words alone")
          .add("buckets", &Text::buckets, "buckets", between(1, 100'000'000),
               "that n-grams are hashed into: rows of the network's table")
          .add("slots", &Text::slots, "n-grams", between(1, 65536),
               "of a sentence; of a longer one the end is left out")
          .add("positive", &Text::positive, "", anything,
               "the class that is looked for: precision, recall, F1 and average precision are its; empty: caption "
               "where the data have it, else their last")
          .done();
  return section;
}

}  // namespace

Table<Job>& nest_task_sections(Table<Job>& table) {
  return table.nest("regress", &Job::regress, regress_section())
      .nest("multilabel", &Job::multilabel, multilabel_section())
      .nest("detect", &Job::detect, detect_section())
      .nest("instances", &Job::instances, instances_section())
      .nest("nowcast", &Job::nowcast, nowcast_section())
      .nest("segment", &Job::segment, segment_section())
      .nest("caption", &Job::caption, caption_section())
      .nest("text", &Job::text, text_section());
}

}  // namespace lockstep::spec
