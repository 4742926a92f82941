// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_rows.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/task/json_member.h"
#include "lockstep/task/paste_mask.h"

namespace lockstep::task {

int64_t Detection::mask_side() const {
  return std::lround(std::sqrt(static_cast<double>(mask.size())));
}

std::vector<int64_t> Detection::runs(int64_t width, int64_t height) const {
  return paste_mask(mask, mask_side(), box, width, height);
}

ImageExtent extent_of(const Rows& rows, int64_t i) {
  base::ensure(i < std::ssize(rows.annotations), "rows of objects have annotations");
  const std::string& words = rows.annotations[static_cast<size_t>(i)];
  const base::Json all = read_json_member(std::as_bytes(std::span(words.data(), words.size())));
  return {all.at("width").as_int(), all.at("height").as_int()};
}

namespace {

// What is known of the image of row `i` besides: year, place.
base::Json columns_of(const Rows& rows, int64_t i) {
  const std::string& words = rows.annotations[static_cast<size_t>(i)];
  const base::Json all = read_json_member(std::as_bytes(std::span(words.data(), words.size())));
  const base::Json* columns = all.find("columns");
  return columns ? *columns : base::Json();
}

}  // namespace

std::vector<Detection> detections_of(const Rows& rows, int64_t i, const ImageExtent& image, int64_t num_classes,
                                     const Context* context) {
  const auto has_masks = std::any_of(rows.outputs.begin(), rows.outputs.end(),
                                     [](const OutputValues& output) { return output.name == "masks"; });
  const auto boxes = rows.output("boxes").row(i), scores = rows.output("scores").row(i);
  const auto labels = rows.output("labels").row(i);
  const auto masks = has_masks ? rows.output("masks").row(i) : std::span<const float>();
  const size_t pixels = masks.size() / std::max<size_t>(1, scores.size());
  const float* const shown = rows.field("shown").values<float>(i);
  const std::array<float, 2> ratio{static_cast<float>(image.width) / shown[1],
                                   static_cast<float>(image.height) / shown[0]};
  std::vector<Detection> found;
  for (size_t slot = 0; slot < scores.size(); ++slot) {
    Detection one{.score = scores[slot], .plain_score = scores[slot]};
    for (size_t k = 0; k < 4; ++k) one.box[k] = boxes[4 * slot + k] * ratio[k % 2];
    const bool is_sound = std::isfinite(one.score) && std::isfinite(labels[slot]) &&
                          std::all_of(one.box.begin(), one.box.end(), [](float at) { return std::isfinite(at); });
    if (!is_sound || one.score <= 0) continue;
    one.label = static_cast<int32_t>(std::lround(labels[slot])) - 1;
    if (one.label < 0 || one.label >= num_classes) continue;
    one.mask = masks.subspan(slot * pixels, pixels);
    found.push_back(one);
  }
  if (context) {
    std::vector<Context::Answer> answers;
    answers.reserve(found.size());
    for (const Detection& one : found) answers.push_back({one.label, one.score});
    const std::vector<float> changed =
        context->scores(answers, context->has_columns() ? columns_of(rows, i) : base::Json());
    for (size_t k = 0; k < found.size(); ++k) found[k].score = changed[k];
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Detection& a, const Detection& b) { return a.score > b.score; });
  return found;
}

}  // namespace lockstep::task
