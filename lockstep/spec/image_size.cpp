// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/image_size.h"

#include "lockstep/base/text.h"

namespace lockstep::spec {

base::Json to_json(const ImageSize& size) {
  if (size.is_square()) return size.height;
  return base::Json::array({size.height, size.width});
}

ImageSize image_size_of(const base::Json& value) {
  if (value.is_integer()) return value.as_int();
  return {value.items()[0].as_int(), value.items()[1].as_int()};
}

std::string to_text(const ImageSize& size) {
  return size.is_square() ? base::text(size.height) : base::text(size.height, "x", size.width);
}

}  // namespace lockstep::spec
