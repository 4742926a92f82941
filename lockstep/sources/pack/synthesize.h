// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "lockstep/base/file.h"
#include "lockstep/sources/pack/shapes.h"

namespace lockstep::sources {

// Drawn scenes in the layouts of real datasets, to be prepared like these. A fifth is for validation (KITTI: its own
// split by seed, when it is prepared); every image has a number of its own over both parts.
//   kitti     FOLDER/training/{image_2,label_2,calib}/NNNNNN.*: shapes stand for KITTI's types
//   coco      FOLDER/{train,val}/*.jpg, FOLDER/annotations/instances_{train,val}.json: boxes and polygons
//   labels    FOLDER/{JPEGImages,SegmentationClass,ImageSets/Segmentation}, classes.txt: PASCAL VOC's label images
//   captions  FOLDER/images/*.jpg, FOLDER/captions.json: "a star, then a disk"
struct ScenesRequest {
  std::string kind;
  base::Path folder;
  int64_t count = 4000;
  int64_t classes = 8;  // 2 to 8
  int64_t seed = 1;
  int64_t image_size = 96;  // height of an image
  int64_t threads = 0;
};

// As prepare_shapes: left alone when complete, completed when not, the same bytes on any number of threads.
Dataset prepare_scenes(const ScenesRequest& request, const std::function<void(int64_t done, int64_t total)>& progress);

}  // namespace lockstep::sources
