// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/kernel/roi_align.h"
#include "lockstep/model/architecture.h"

// Inside of the model room: the blocks of Faster R-CNN (Ren et al. 2015, arXiv 1506.01497) and Mask R-CNN (He et al.
// 2017, arXiv 1703.06870) behind their trunk, as torchvision has them. Every shape is fixed: what an image has less of
// is marked as absent. No block waits for the device.
namespace lockstep::model {

struct RcnnShape {
  int64_t channels = 256;  // of the pyramid
  int64_t hidden = 1024;   // of the boxes' head
  int64_t classes = 1;     // the background, class 0, included
  bool masks = true;
  spec::ImageSize image_size;
  spec::Instances instances;
};

// What travels from the pyramid on: its finest map, what the batch says of the images, the coarser maps, and behind
// them what the blocks add.
class RcnnBundle {
 public:
  RcnnBundle(const Bundle& values, const RcnnShape& shape) : values_(values), masks_(shape.masks) {}

  const at::Tensor& shown() const { return values_[1]; }   // float [images, 2]: height and width; 0: a blank image
  const at::Tensor& boxes() const { return values_[2]; }   // float [images, slots, 4]
  const at::Tensor& labels() const { return values_[3]; }  // int64 [images, slots]; 0: an empty slot
  const at::Tensor& masks() const { return values_[4]; }   // uint8 [images, slots, cells, cells]. REQUIRES: masks
  const at::Tensor& map(size_t level) const { return level == 0 ? values_[0] : values_[first() + level - 1]; }
  kernel::Pyramid pyramid() const { return {map(0), map(1), map(2), map(3)}; }
  // Without the maps behind the `levels` first ones, and what was added.
  Bundle up_to(size_t levels) const {
    return {values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(first() + levels - 1)};
  }
  const at::Tensor& added(size_t index) const { return values_[first() + kernel::Pyramid().size() - 1 + index]; }
  Bundle all_added(size_t from) const {
    return {values_.begin() + static_cast<std::ptrdiff_t>(first() + kernel::Pyramid().size() - 1 + from),
            values_.end()};
  }

 private:
  size_t first() const { return masks_ ? 5 : 4; }  // of the coarser maps
  const Bundle& values_;
  bool masks_;
};

// The pyramid (Lin et al. 2016, arXiv 1612.03144). Takes the trunk's last map, what the batch says, and its maps of
// strides 4, 8 and 16; `channels` of the four.
std::unique_ptr<Block> make_fpn(const Request& request, const RcnnShape& shape, const std::vector<int64_t>& channels);

// The region proposal network: adds proposals [images, n, 4] and which of them there are, bool [images, n]; while
// training five more: what the anchors that are learnt from say and should say.
std::unique_ptr<Block> make_rpn(const Request& request, const RcnnShape& shape);

// While training chooses the regions that are learnt from among proposals and objects; reads them from the pyramid.
std::unique_ptr<Block> make_box_head(const Request& request, const RcnnShape& shape);

// Classes, boxes and masks: the network's outputs.
std::unique_ptr<Block> make_rcnn_head(const Request& request, const RcnnShape& shape);

// Entries [images, n, ...] at indices int64 [images, k]: [images, k, ...].
at::Tensor entries_at(const at::Tensor& values, const at::Tensor& indices);

}  // namespace lockstep::model
