// SPDX-License-Identifier: Apache-2.0
// Our side of tests/oracles/instances.py: cases on standard input, an answer a line.
//   paste WIDTH HEIGHT SIDE X1 Y1 X2 Y2 PROBABILITIES...   -> the runs of the mask
//   window WIDTH HEIGHT OUT_W OUT_H FLIP X1 Y1 X2 Y2 SIZE COUNTS   -> size * size digits: a mask's window in a batch
#include <iostream>
#include <sstream>

#include "lockstep/task/mask_window.h"
#include "lockstep/task/paste_mask.h"

namespace {

using namespace lockstep;

void paste(std::istream& words) {
  int64_t width = 0, height = 0, side = 0;
  words >> width >> height >> side;
  std::array<float, 4> box{};
  for (float& at : box) words >> at;
  std::vector<float> probabilities(static_cast<size_t>(side * side));
  for (float& value : probabilities) words >> value;
  for (const int64_t run : task::paste_mask(probabilities, side, box, width, height)) std::cout << run << " ";
  std::cout << "\n";
}

void window(std::istream& words) {
  task::AnnotatedImage image;
  int64_t out_width = 0, out_height = 0, flip = 0, size = 0;
  image::Box box;
  words >> image.width >> image.height >> out_width >> out_height >> flip >> box.left >> box.top >> box.right >>
      box.bottom >> size;
  task::Object object;
  base::Json counts = base::Json::array();
  for (int64_t run = 0; words >> run;) counts.push_back(run);
  object.outline["size"] = base::Json::array({image.height, image.width});
  object.outline["counts"] = std::move(counts);
  const auto axis = [](int64_t length, int64_t outputs) {
    return image::Axis{
        .num_outputs = outputs, .scale = static_cast<double>(length) / static_cast<double>(outputs), .high = length};
  };
  image::View view{.x = axis(image.width, out_width), .y = axis(image.height, out_height)};
  view.x.reversed = flip != 0;
  std::vector<uint8_t> out(static_cast<size_t>(size * size));
  task::fill_mask_window(object, image, view, box, size, out.data());
  for (const uint8_t value : out) std::cout << int{value};
  std::cout << "\n";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    kind == "paste" ? paste(words) : window(words);
  }
  return 0;
}
