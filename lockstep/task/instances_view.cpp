// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_view.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::task {
namespace {

constexpr double kHair = 1e-6;         // 480 * (800.0 / 480) is 800
constexpr double kMostStretch = 0.02;  // rounding of a resize; more is another image

int64_t resized_length(int64_t length, double scale) {
  return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(length) * scale + kHair));
}

// The whole of `length`, `scale` times as long; of what `most` pixels cannot show a part that `random` chooses.
image::Axis resized_axis(int64_t length, double scale, int64_t most, base::Random* random) {
  const int64_t resized = resized_length(length, scale);
  image::Axis axis{.num_outputs = std::min(resized, most), .high = length};
  axis.scale = static_cast<double>(length) / static_cast<double>(resized);
  if (resized > most && random) axis.begin = static_cast<double>(random->below(resized - most + 1)) * axis.scale;
  return axis;
}

// Of an image that training does not scale.
double plain_scale(int64_t width, int64_t height, const spec::Job& job) {
  const spec::Instances& how = job.instances;
  const spec::ImageSize& size = job.data.image_size;
  const auto share = [](int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); };
  return std::min({share(how.min_size, std::min(width, height)), share(how.max_size, std::max(width, height)),
                   share(size.width, width), share(size.height, height)});
}

}  // namespace

std::vector<spec::ImageSize> instances_canvases(const spec::Job& job) {
  std::vector<spec::ImageSize> all{job.data.image_size};
  for (const std::string& text : job.instances.canvases) {
    const auto size = spec::image_size_from(text);
    base::ensure(size.has_value(), "the job's rules have looked at instances.canvases");
    all.push_back(*size);
  }
  return all;
}

int64_t fitting_canvas(int64_t width, int64_t height, const spec::Job& job) {
  const std::vector<spec::ImageSize> canvases = instances_canvases(job);
  const bool scales = job.data.augment != spec::Augment::none;
  const double scale = plain_scale(width, height, job) * (scales ? job.instances.scale_max : 1);
  const int64_t wide = std::min(resized_length(width, scale), job.data.image_size.width);
  const int64_t high = std::min(resized_length(height, scale), job.data.image_size.height);
  size_t best = 0;
  for (size_t i = 1; i < canvases.size(); ++i) {
    const bool fits = wide <= canvases[i].width && high <= canvases[i].height;
    if (fits && canvases[i].pixels() < canvases[best].pixels()) best = i;
  }
  return static_cast<int64_t>(best);
}

image::View instances_view(int64_t width, int64_t height, const spec::Job& job, std::optional<base::Random> random) {
  const spec::Instances& how = job.instances;
  const spec::ImageSize& size = job.data.image_size;
  double scale = plain_scale(width, height, job);
  if (job.data.augment == spec::Augment::none) random.reset();
  if (random) scale *= how.scale_min == how.scale_max ? how.scale_max : random->uniform(how.scale_min, how.scale_max);
  base::Random* const numbers = random ? &*random : nullptr;
  image::View view{.x = resized_axis(width, scale, size.width, numbers),
                   .y = resized_axis(height, scale, size.height, numbers)};
  if (!random) return view;
  view.x.reversed = job.data.flip && random->chance(0.5);
  if (job.data.augment == spec::Augment::strong) {
    view.colour.brightness = static_cast<float>(random->uniform(0.6, 1.4));
    view.colour.contrast = static_cast<float>(random->uniform(0.6, 1.4));
    view.colour.saturation = static_cast<float>(random->uniform(0.6, 1.4));
    view.colour.hue = static_cast<float>(random->uniform(-0.1, 0.1));
  }
  return view;
}

image::View view_of_list(const image::View& view, const image::ImageInfo& image, int64_t width, int64_t height) {
  const double x = static_cast<double>(width) / static_cast<double>(image.width);
  const double y = static_cast<double>(height) / static_cast<double>(image.height);
  const double pixel = 1.0 / static_cast<double>(std::min(image.width, image.height));
  if (std::abs(x / y - 1) > kMostStretch + pixel) {
    throw base::Error(base::Blame::user,
                      base::text("its annotations are drawn on ", width, " x ", height, " pixels, and it has ",
                                 image.width, " x ", image.height),
                      "are these the images that the list was made for?");
  }
  image::View list = view;
  const auto stretch = [](image::Axis& axis, double by, int64_t size) {
    axis.begin *= by;
    axis.scale *= by;
    axis.low = 0;
    axis.high = size;
  };
  stretch(list.x, x, width);
  stretch(list.y, y, height);
  return list;
}

}  // namespace lockstep::task
