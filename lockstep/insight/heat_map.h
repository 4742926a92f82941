// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/image/image.h"
#include "lockstep/model/network.h"
#include "lockstep/spec/job.h"

namespace lockstep::insight {

// Which pixels an answer rests on.
// grad_cam: where the last maps of a convolutional network speak for the class (Selvaraju et al. 2017).
// rollout: where the class token of a transformer looks, through all of its blocks (Abnar and Zuidema 2020); the same
//          for every class.
// occlusion: how much of the probability goes when a square is covered; for any network, and slow (Zeiler and Fergus).
enum class HeatMethod { grad_cam, rollout, occlusion };
HeatMethod heat_method_named(const std::string& name);  // user error for another one
std::string name_of(HeatMethod method);
// The one that fits this network best. `images` as heat_maps takes them.
HeatMethod fitting_method(const model::Network& network, const at::Tensor& images);

// For each image, from 0 (no part in it) to 1 (the most): [rows, height, width], in main memory. `images`: [rows, 3,
// height, width] as the network takes them, float; `classes`: by row. Nothing depends on gradients being on. User error
// when the network has nothing for the method.
at::Tensor heat_maps(const model::Network& network, const at::Tensor& images, const std::vector<int64_t>& classes,
                     HeatMethod method);

// A row of `images` for people, as it was before it was normalised.
image::Image shown_view(const at::Tensor& image, const spec::Data& data);

}  // namespace lockstep::insight
