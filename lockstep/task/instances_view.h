// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lockstep/base/random.h"
#include "lockstep/image/augment.h"
#include "lockstep/image/decode.h"
#include "lockstep/spec/job.h"

namespace lockstep::task {

// An image of width x height as task instances shows it: its aspect ratio is kept, its shorter side has
// instances.min_size pixels unless the longer one would have more than max_size, and neither goes beyond
// data.image_size. Training (`random`) multiplies its size by instances.scale_min to scale_max and mirrors half of the
// images; where the image outgrows data.image_size, a random part of it is shown.
image::View instances_view(int64_t width, int64_t height, const spec::Job& job, std::optional<base::Random> random);

// Where images are shown: data.image_size, then the job's instances.canvases. A view does not depend on the canvas,
// which only says how much of it stays blank.
std::vector<spec::ImageSize> instances_canvases(const spec::Job& job);

// The one of fewest pixels on which every view of such an image fits; of equal ones the first.
int64_t fitting_canvas(int64_t width, int64_t height, const spec::Job& job);

// The same view in coordinates of what was annotated: the image's list may be drawn on it in another resolution. User
// error where that has another shape.
image::View view_of_list(const image::View& view, const image::ImageInfo& image, int64_t width, int64_t height);

}  // namespace lockstep::task
