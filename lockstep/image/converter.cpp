// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/converter.h"

#include <string>
#include <utility>

namespace lockstep::image {
namespace {

constexpr std::pair<std::string_view, std::string_view> kConverters[] = {
    {" heic heif hif avif ", kHeifConverter},
    {" jxl ", kJxlConverter},
    {" cr2 cr3 nef arw dng raf orf rw2 pef ", kRawConverter},
    {" gif bmp psd exr jp2 j2k tga ppm ", kOtherConverter},
    {" jfif jpe ", "mv IN OUT.jpg (it is a JPEG)"},
};

}  // namespace

std::string_view converter_for(std::string_view extension) {
  const std::string word = " " + std::string(extension) + " ";
  for (const auto& [words, converter] : kConverters) {
    if (words.find(word) != std::string_view::npos) return converter;
  }
  return "";
}

}  // namespace lockstep::image
