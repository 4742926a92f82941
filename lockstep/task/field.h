// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/spec/job.h"

namespace lockstep::task {

enum class Element { uint8, bf16, fp32, int64 };
int64_t bytes_of(Element element);
Element element_of(spec::Pixels pixels);

// One field of a batch: what every sample has, of one type and one fixed shape. Absence is a value of the field, or a
// field of its own, never another shape: so a step can be planned, and captured.
struct Field {
  enum class Kind { plain, image };

  std::string name;
  Element element = Element::fp32;
  std::vector<int64_t> shape =
      {};  // of one sample. An image: [channels, height, width], stored [height, width, channels]
  Kind kind = Kind::plain;

  int64_t count() const;  // elements of one sample
  int64_t bytes() const { return count() * bytes_of(element); }
  bool operator==(const Field&) const = default;
};

Field image_field(const spec::Data& data);  // "image", as data.image_size and data.pixels say

int64_t row_bytes(const std::vector<Field>& fields);  // of one sample, all of them
// REQUIRES: there is one of this name.
size_t index_of(const std::vector<Field>& fields, const std::string& name);

// The values of one field for the samples of a batch, one after the other.
struct FieldValues {
  Field field;
  std::vector<std::byte> bytes = {};

  std::byte* row(int64_t i) { return bytes.data() + i * field.bytes(); }
  template <class Value>  // REQUIRES: the field's own type
  const Value* values(int64_t row = 0) const {
    return reinterpret_cast<const Value*>(bytes.data() + row * field.bytes());
  }
};

}  // namespace lockstep::task
