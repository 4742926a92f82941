// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/field.h"

#include "lockstep/base/error.h"

namespace lockstep::task {

int64_t bytes_of(Element element) {
  switch (element) {
    case Element::uint8:
      return 1;
    case Element::bf16:
      return 2;
    case Element::fp32:
      return 4;
    case Element::int64:
      return 8;
  }
  return 0;
}

Element element_of(spec::Pixels pixels) {
  switch (pixels) {
    case spec::Pixels::fp32:
      return Element::fp32;
    case spec::Pixels::bf16:
      return Element::bf16;
    case spec::Pixels::uint8:
      return Element::uint8;
  }
  return Element::fp32;
}

int64_t Field::count() const {
  int64_t all = 1;
  for (const int64_t size : shape) all *= size;
  return all;
}

Field image_field(const spec::Data& data) {
  return {"image",
          element_of(data.pixels),
          {static_cast<int64_t>(data.mean.size()), data.image_size.height, data.image_size.width},
          Field::Kind::image};
}

int64_t row_bytes(const std::vector<Field>& fields) {
  int64_t bytes = 0;
  for (const Field& field : fields) bytes += field.bytes();
  return bytes;
}

size_t index_of(const std::vector<Field>& fields, const std::string& name) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
  }
  base::ensure(false, "a batch has the field that is asked for");
  return 0;
}

}  // namespace lockstep::task
