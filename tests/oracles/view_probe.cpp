// SPDX-License-Identifier: Apache-2.0
// Our side of tests/oracles/views.py; every command reads standard input and writes standard output.
//   view_probe boxes X Y W H OUT_W OUT_H FLIP MIN_VISIBLE   lines "LEFT TOP RIGHT BOTTOM" -> "INDEX LEFT TOP RIGHT
//   BOTTOM" view_probe mask X Y W H OUT_W OUT_H FLIP WIDTH HEIGHT   bytes -> bytes view_probe colour BRIGHTNESS
//   CONTRAST SATURATION HUE    float32 RGB in 0..1 -> the same
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "lockstep/image/detection_view.h"

namespace {

using namespace lockstep;

image::View view_of(const std::vector<double>& v) {
  const auto axis = [](double begin, double length, double outputs) {
    return image::Axis{.num_outputs = static_cast<int64_t>(outputs),
                       .begin = begin,
                       .scale = length / outputs,
                       .low = static_cast<int64_t>(begin),
                       .high = static_cast<int64_t>(begin + length)};
  };
  image::View view{.x = axis(v[0], v[2], v[4]), .y = axis(v[1], v[3], v[5])};
  view.x.reversed = v[6] != 0;
  return view;
}

std::string all_of_input() {
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

int boxes(const std::vector<double>& v) {
  std::vector<image::Box> given;
  for (image::Box box; std::cin >> box.left >> box.top >> box.right >> box.bottom;) given.push_back(box);
  for (const auto& shown : image::show_boxes(view_of(v), given, v[7])) {
    std::printf("%zu %.9g %.9g %.9g %.9g\n", shown.index, shown.box.left, shown.box.top, shown.box.right,
                shown.box.bottom);
  }
  return 0;
}

int mask(const std::vector<double>& v) {
  const std::string bytes = all_of_input();
  const image::Bitmap given{static_cast<int64_t>(v[7]), static_cast<int64_t>(v[8]), {bytes.begin(), bytes.end()}};
  const image::Bitmap shown = image::show_mask(view_of(v), given);
  std::fwrite(shown.pixels.data(), 1, shown.pixels.size(), stdout);
  return 0;
}

int colour(const std::vector<double>& v) {
  std::string bytes = all_of_input();
  const image::Colour how{static_cast<float>(v[0]), static_cast<float>(v[1]), static_cast<float>(v[2]),
                          static_cast<float>(v[3])};
  image::change_colour(reinterpret_cast<float*>(bytes.data()), static_cast<int64_t>(bytes.size() / 12), how);
  std::fwrite(bytes.data(), 1, bytes.size(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<double> values;
  for (int i = 2; i < argc; ++i) values.push_back(std::stod(argv[i]));
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "boxes" && values.size() == 8) return boxes(values);
  if (what == "mask" && values.size() == 9) return mask(values);
  if (what == "colour" && values.size() == 4) return colour(values);
  std::fprintf(stderr, "view_probe: see the head of its source\n");
  return 2;
}
