// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/draw_classes.h"

#include <string>
#include <vector>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/draw.h"

namespace lockstep::task {

bool draw_classes(const base::Json& record, image::Image& image) {
  constexpr size_t kMostLines = 3;
  constexpr double kLeast = 0.1;
  const base::Json* classes = record.find("classes");
  if (!classes || !classes->is_array() || classes->size() == 0) return false;
  std::vector<std::string> lines;
  for (const auto& entry : classes->items()) {
    const double probability = entry.at("probability").as_double();
    if (lines.size() == kMostLines || (!lines.empty() && probability < kLeast)) break;
    lines.push_back(base::text(entry.at("name").as_string(), " ", base::fixed(probability, 2)));
  }
  const int64_t zoom = image::fitting_zoom(image), height = (image::kLetterHeight + 2) * zoom;
  int64_t top = image.height - static_cast<int64_t>(lines.size()) * height;
  for (const auto& line : lines) {
    image::draw_label(image, line, 0, top, {0, 0, 0}, zoom);
    top += height;
  }
  return true;
}

}  // namespace lockstep::task
