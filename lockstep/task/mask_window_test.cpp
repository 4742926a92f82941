// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/mask_window.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::task {
namespace {

using Digits = std::vector<std::string>;

image::View whole_view(int64_t width, int64_t height, double shrink) {
  const auto axis = [&](int64_t length) {
    return image::Axis{
        .num_outputs = static_cast<int64_t>(static_cast<double>(length) / shrink), .scale = shrink, .high = length};
  };
  return {.x = axis(width), .y = axis(height)};
}

Digits window(const Object& object, const AnnotatedImage& image, const image::View& view, const image::Box& box,
              int64_t size) {
  std::vector<uint8_t> out(static_cast<size_t>(size * size), 9);
  fill_mask_window(object, image, view, box, size, out.data());
  Digits rows;
  for (int64_t y = 0; y < size; ++y) {
    rows.emplace_back();
    for (int64_t x = 0; x < size; ++x) rows.back() += static_cast<char>('0' + out[static_cast<size_t>(y * size + x)]);
  }
  return rows;
}

Object outlined(const std::string& segmentation) {
  Object object;
  object.outline = base::parse_json(segmentation, "outline");
  return object;
}

// tests/oracles/instances.py holds it against torchvision's resize of masks.
TEST(MaskWindow, HasAPixelForAPixelWhereTheBoxIsSmall) {
  const AnnotatedImage image{12, 10};
  const Object object = outlined("[[4, 3, 8, 3, 8, 5, 4, 5]]");  // columns 4 to 7, rows 3 and 4
  EXPECT_EQ(window(object, image, whole_view(12, 10, 1), {3.5, 2.2, 8, 5}, 6),
            (Digits{"000000", "011110", "011110", "000000", "000000", "000000"}));
  image::View mirrored = whole_view(12, 10, 1);
  mirrored.x.reversed = true;
  EXPECT_EQ(window(object, image, mirrored, {4, 2.2, 8.5, 5}, 6),
            (Digits{"000000", "111100", "111100", "000000", "000000", "000000"}));
}

TEST(MaskWindow, ShowsAllOfALargerBox) {
  const AnnotatedImage image{40, 40};
  const Object object = outlined("[[0, 0, 20, 0, 20, 40, 0, 40]]");  // the left half
  EXPECT_EQ(window(object, image, whole_view(40, 40, 1), {0, 0, 40, 40}, 4), (Digits{"1100", "1100", "1100", "1100"}));
  EXPECT_EQ(window(object, image, whole_view(40, 40, 4), {0, 0, 10, 2}, 4), (Digits{"1100", "1100", "0000", "0000"}));
}

TEST(MaskWindow, OfAnObjectWithoutAnOutlineIsEmpty) {
  EXPECT_EQ(window({}, {40, 40}, whole_view(40, 40, 1), {0, 0, 40, 40}, 2), (Digits{"00", "00"}));
}

TEST(MaskWindow, TakesNoMemoryForTheImage) {
  const AnnotatedImage image{50000, 2600};  // 130 million pixels
  const Object object = outlined("[[0, 0, 25000, 0, 25000, 2600, 0, 2600]]");
  EXPECT_EQ(window(object, image, whole_view(50000, 2600, 50), {0, 0, 1000, 52}, 2), (Digits{"10", "10"}));
}

TEST(MaskWindow, AnOutlineThatIsNoneIsNamed) {
  for (const char* wrong : {R"({"size": [9, 12], "counts": [108]})", "[[1, 1, 5, 5]]", R"({"circle": 1})"}) {
    try {
      window(outlined(wrong), {12, 10}, whole_view(12, 10, 1), {0, 0, 5, 5}, 2);
      ADD_FAILURE() << wrong;
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      EXPECT_TRUE(std::string(error.what()).starts_with("segmentation: ")) << error.what();
    }
  }
}

TEST(SampleRuns, PicksSinglePixels) {
  const std::vector<int64_t> runs{5, 2, 2, 2, 2, 2, 5};  // 4 x 5 (h x w): rows 1 and 2 of columns 1 to 3
  std::vector<uint8_t> out(4 * 5);
  sample_runs(runs, 4, std::vector<int64_t>{0, 1, 2, 3, 4}, std::vector<int64_t>{0, 1, 2, 3}, out.data());
  EXPECT_EQ(out, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace lockstep::task
