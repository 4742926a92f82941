// SPDX-License-Identifier: Apache-2.0
// Our side of tests/oracles/images.py.
//   decode_probe decode IMAGE OUT             "WIDTH HEIGHT", RGB bytes to OUT
//   decode_probe parts IMAGE COUNT            random parts against the whole, bit by bit
//   decode_probe center IMAGE SIZE CROP OUT   the evaluation's pixels in 0..1 as float32 to OUT
//   decode_probe change IMAGE NUMBER MAGNITUDE OUT   an operation of image/policy.h on the whole image, RGB bytes to
//   OUT decode_probe rate FOLDER SIZE THREADS N   images per second of the loader over N images
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/random.h"
#include "lockstep/image/decode.h"
#include "lockstep/image/policy.h"
#include "lockstep/loader/loader.h"

namespace {

using namespace lockstep;

std::span<const std::byte> as_bytes(const std::string& file) {
  return std::as_bytes(std::span(file.data(), file.size()));
}

int decode(const std::string& path, const std::string& out) {
  const image::Image image = image::decode_image(as_bytes(base::read_file(path)));
  base::write_file(out, {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
  std::printf("%ld %ld\n", static_cast<long>(image.width), static_cast<long>(image.height));
  return 0;
}

int parts(const std::string& path, int count) {
  const std::string file = base::read_file(path);
  const image::Image whole = image::decode_image(as_bytes(file));
  const image::ImageInfo info = image::read_image_info(as_bytes(file));
  base::Random random(1);
  image::ImageReader reader;
  image::DecodedPart part;
  for (int i = 0; i < count; ++i) {
    image::PartRequest ask;
    ask.x = random.below(info.width);
    ask.y = random.below(info.height);
    ask.width = 1 + random.below(info.width - ask.x);
    ask.height = 1 + random.below(info.height - ask.y);
    reader.open(as_bytes(file));
    reader.read(ask, part);
    for (int64_t y = ask.y; y < ask.y + ask.height; ++y) {
      const uint8_t* expected = whole.row(y) + 3 * ask.x;
      if (!std::equal(expected, expected + 3 * ask.width, part.image.row(y - part.y) + 3 * (ask.x - part.x))) {
        std::printf("part %ld,%ld %ldx%ld differs in row %ld\n", static_cast<long>(ask.x), static_cast<long>(ask.y),
                    static_cast<long>(ask.width), static_cast<long>(ask.height), static_cast<long>(y));
        return 1;
      }
    }
  }
  return 0;
}

int center(const std::string& path, int64_t size, double crop, const std::string& out) {
  spec::Data data;
  data.image_size = size;
  data.center_crop = crop;
  data.mean = {0, 0, 0};
  data.std = {1, 1, 1};
  const auto pixels = loader::load_image(path, data);
  base::write_file(out, {reinterpret_cast<const char*>(pixels.data()), pixels.size() * sizeof(float)});
  return 0;
}

int change(const std::string& path, int number, double magnitude, const std::string& out) {
  image::Image image = image::decode_image(as_bytes(base::read_file(path))), scratch;
  image::apply({static_cast<image::Operation>(number), magnitude}, image, scratch);
  base::write_file(out, {reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()});
  return 0;
}

int rate(const std::string& folder, int64_t size, int64_t threads, int64_t count) {
  const loader::Collection collection = loader::scan_folder(folder);
  loader::LoaderOptions options;
  options.data.image_size = size;
  options.threads = threads;
  const auto loader = loader::make_loader(collection, options, {options.seed, 0, 0});
  loader->recycle(loader->next());  // warm
  const auto start = std::chrono::steady_clock::now();
  int64_t seen = 0;
  while (seen < count) {
    loader::Batch batch = loader->next();
    seen += batch.size();
    loader->recycle(std::move(batch));
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%.1f\n", static_cast<double>(seen) / seconds.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string act = argc > 1 ? argv[1] : "";
  try {
    if (act == "decode" && argc == 4) return decode(argv[2], argv[3]);
    if (act == "parts" && argc == 4) return parts(argv[2], std::atoi(argv[3]));
    if (act == "center" && argc == 6) return center(argv[2], std::atol(argv[3]), std::atof(argv[4]), argv[5]);
    if (act == "change" && argc == 6) return change(argv[2], std::atoi(argv[3]), std::atof(argv[4]), argv[5]);
    if (act == "rate" && argc == 6) return rate(argv[2], std::atol(argv[3]), std::atol(argv[4]), std::atol(argv[5]));
  } catch (const base::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return error.exit_code();
  }
  std::fprintf(stderr, "see the comment at the top of decode_probe.cpp\n");
  return 2;
}
