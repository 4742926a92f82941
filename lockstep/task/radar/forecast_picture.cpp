// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/radar/forecast_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/image/animation.h"

namespace lockstep::task {
namespace {

using image::Color;
using image::Image;

constexpr int64_t kLeastSide = 96, kGap = 4, kCaption = 12, kMostColumns = 6, kFrameMilliseconds = 250;
constexpr Color kPaper{24, 26, 32}, kInk{235, 235, 235}, kMissingColor{70, 70, 74}, kDryColor{12, 14, 20};

struct RainStep {
  double dbz;  // from here on
  Color color;
};
constexpr std::array<RainStep, 11> kRainScale = {{{5, {40, 60, 90}},
                                                  {10, {40, 90, 160}},
                                                  {15, {60, 150, 220}},
                                                  {20, {70, 200, 190}},
                                                  {25, {60, 190, 90}},
                                                  {30, {160, 215, 70}},
                                                  {35, {245, 225, 70}},
                                                  {40, {245, 165, 50}},
                                                  {45, {230, 90, 45}},
                                                  {50, {200, 35, 60}},
                                                  {57, {215, 80, 210}}}};

// Whole pixels a cell, so that frames keep their edges.
int64_t zoom_of(const Frames& frames) {
  return std::max<int64_t>(1, (kLeastSide + frames.height - 1) / frames.height);
}

void draw_frame(Image& on, const Frames& frames, int64_t i, int64_t left, int64_t top) {
  const int64_t zoom = zoom_of(frames);
  const auto codes = frames.frame(i);
  for (int64_t y = 0; y < frames.height * zoom; ++y) {
    uint8_t* row = on.row(top + y) + 3 * left;
    for (int64_t x = 0; x < frames.width * zoom; ++x) {
      const Color color = rain_color(codes[static_cast<size_t>(y / zoom * frames.width + x / zoom)]);
      *row++ = color.red;
      *row++ = color.green;
      *row++ = color.blue;
    }
  }
}

Image paper(int64_t width, int64_t height) {
  Image image(width, height);
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    image.pixels[i] = kPaper.red;
    image.pixels[i + 1] = kPaper.green;
    image.pixels[i + 2] = kPaper.blue;
  }
  return image;
}

std::string lead_text(double minutes) {
  return base::text(minutes > 0 ? "+" : "", std::round(minutes * 10) / 10, " min");
}

}  // namespace

Color rain_color(uint8_t code) {
  if (code == kCodeMissing) return kMissingColor;
  Color color = kDryColor;
  if (code == kCodeDry) return color;
  for (const RainStep& step : kRainScale) {
    if (dbz_of_code(code) >= step.dbz) color = step.color;
  }
  return color;
}

Image forecast_sheet(const ShownForecast& shown) {
  const Frames& forecast = shown.forecast;
  const int64_t zoom = zoom_of(forecast), width = forecast.width * zoom, height = forecast.height * zoom;
  const int64_t columns = std::min(kMostColumns, forecast.count), rows = shown.truth.count > 0 ? 2 : 1;
  Image sheet = paper(columns * (width + kGap) + kGap, kCaption + rows * (height + kGap) + kGap);
  for (int64_t column = 0; column < columns; ++column) {
    const int64_t lead = (column + 1) * forecast.count / columns - 1;  // the last one too
    const int64_t left = kGap + column * (width + kGap);
    draw_text(sheet, lead_text(static_cast<double>(lead + 1) * shown.minutes), left, 3, kInk, 1);
    if (rows == 2) draw_frame(sheet, shown.truth, lead, left, kCaption);
    draw_frame(sheet, forecast, lead, left, kCaption + (rows - 1) * (height + kGap));
  }
  return sheet;
}

std::string forecast_animation(const ShownForecast& shown) {
  const Frames& forecast = shown.forecast;
  const int64_t zoom = zoom_of(forecast), width = forecast.width * zoom, height = forecast.height * zoom;
  const bool has_truth = shown.truth.count > 0;
  std::vector<Image> pictures;
  pictures.reserve(static_cast<size_t>(shown.seen.count + forecast.count));
  for (int64_t i = 0; i < shown.seen.count + forecast.count; ++i) {
    const int64_t lead = i - shown.seen.count;
    Image picture = paper((has_truth ? 2 : 1) * (width + kGap) + kGap, kCaption + height + kGap);
    const std::string when = lead_text(static_cast<double>(lead + 1) * shown.minutes);
    const int64_t right = has_truth ? 2 * kGap + width : kGap;
    draw_text(picture, when, kGap, 3, kInk, 1);
    draw_text(picture, lead < 0 ? "seen" : "forecast", right + (has_truth ? 0 : width / 2), 3, kInk, 1);
    if (has_truth) draw_frame(picture, lead < 0 ? shown.seen : shown.truth, lead < 0 ? i : lead, kGap, kCaption);
    draw_frame(picture, lead < 0 ? shown.seen : forecast, lead < 0 ? i : lead, right, kCaption);
    pictures.push_back(std::move(picture));
  }
  return image::encode_animation(pictures, kFrameMilliseconds);
}

}  // namespace lockstep::task
