// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/detect_grid.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace lockstep::task {
namespace {

using image::Box;

struct Targets {
  DetectGrid grid;
  std::vector<float> object, box, mask;

  Targets(const spec::ImageSize& canvas, const std::vector<Box>& objects, const std::vector<Box>& ignored,
          double focus = 1.8)
      : grid(canvas) {
    const auto cells = static_cast<size_t>(grid.cells());
    object.assign(cells, 9);
    box.assign(cells * 4, 9);
    mask.assign(cells, 9);
    fill_grid(grid, focus, objects, ignored, {object, box, mask});
  }
  float objects() const { return std::accumulate(object.begin(), object.end(), 0.0F); }
  std::vector<float> box_at(int64_t row, int64_t column) const {
    const auto at = box.begin() + 4 * (row * grid.columns + column);
    return {at, at + 4};
  }
};

TEST(DetectGridTest, KittisCanvasHas39By12Cells) {
  const DetectGrid grid(spec::ImageSize(384, 1248));
  EXPECT_EQ(grid.rows, 12);
  EXPECT_EQ(grid.columns, 39);
}

TEST(DetectGridTest, ACellAnswersForTheObjectThatItTouches) {
  const Targets targets({64, 96}, {{40, 4, 60, 28}}, {});  // inside of cell (0, 1)
  EXPECT_EQ(targets.object, (std::vector<float>{0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(targets.box_at(0, 1), (std::vector<float>{2, 0, 20, 24}));
  EXPECT_EQ(targets.box_at(0, 0), (std::vector<float>{0, 0, 0, 0}));
  EXPECT_EQ(targets.mask, std::vector<float>(6, 1));
}

TEST(DetectGridTest, AnEdgeThatMeetsACellDoesNotTouchIt) {
  EXPECT_EQ(Targets({64, 96}, {{32, 0, 64, 32}}, {}).objects(), 1);
  EXPECT_EQ(Targets({64, 96}, {{31.9, 0, 64, 32.1}}, {}).objects(), 4);
}

// 57.6 pixels at KittiBox's 1.8 cells.
TEST(DetectGridTest, ACellFarFromTheCentreAnswersForNothing) {
  const Targets wide({32, 320}, {{0, 0, 320, 32}}, {});  // centre at 160; cells' centres at 16, 48, ... 304
  EXPECT_EQ(wide.object, (std::vector<float>{0, 0, 0, 1, 1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(Targets({32, 320}, {{0, 0, 211.4, 32}}, {}).object[1], 0);  // centre 57.7 from that of cell 1
  EXPECT_EQ(Targets({32, 320}, {{0, 0, 211.0, 32}}, {}).object[1], 1);  // 57.5
  EXPECT_EQ(Targets({32, 320}, {{0, 0, 320, 32}}, {}, 1).objects(), 2);
}

// Whatever else it touches: the second object lies in the middle of cell 1.
TEST(DetectGridTest, TheFirstObjectDecides) {
  const Box far{32, 0, 288, 32}, near{36, 4, 60, 28};
  EXPECT_EQ(Targets({32, 320}, {far, near}, {}).object[1], 0);
  EXPECT_EQ(Targets({32, 320}, {near, far}, {}).object[1], 1);
}

// Its edges taken 2 pixels in, the cells of both counted; beyond the canvas there are none.
TEST(DetectGridTest, IgnoredRegionsAreMasked) {
  EXPECT_EQ(Targets({64, 96}, {}, {{30, 0, 66, 32}}).mask, (std::vector<float>{1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(Targets({64, 96}, {}, {{30, 0, 66, 33.9}}).mask, (std::vector<float>{1, 0, 0, 1, 1, 1}));
  EXPECT_EQ(Targets({64, 96}, {}, {{29, 0, 65, 34}}).mask, (std::vector<float>{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(Targets({64, 96}, {}, {{60, 40, 500, 500}}).mask, (std::vector<float>{1, 1, 1, 1, 0, 0}));
}

TEST(DetectGridTest, AnObjectInAnIgnoredRegionKeepsItsBox) {
  const Targets targets({32, 64}, {{4, 4, 28, 28}}, {{0, 0, 32, 32}});
  EXPECT_EQ(targets.object[0], 1);
  EXPECT_EQ(targets.mask[0], 0);
}

}  // namespace
}  // namespace lockstep::task
