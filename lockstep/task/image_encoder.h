// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/image/render.h"
#include "lockstep/task/task.h"

namespace lockstep::task {

// Where the pixels of a row go, as data.pixels says.
image::PixelTarget pixel_target(spec::Pixels pixels, std::byte* out);

// Renders the image of a sample, the first field of its row; the other fields are those of the task that derives from
// it, which sees the rest of the row.
class ImageEncoder : public Encoder {
 public:
  explicit ImageEncoder(const spec::Data& data) : pixels_(data.pixels), renderer_(data) {}

  void encode(const StoredSample& sample, const std::optional<base::Random>& random, FieldPointers out) final;
  void draw(int32_t label, const base::Random& random, FieldPointers out) final;
  void blank(FieldPointers out) final;
  double decode_seconds() const final { return renderer_.decode_seconds(); }

 protected:
  virtual void encode_rest(const StoredSample& sample, FieldPointers rest) = 0;
  virtual void draw_rest(int32_t label, base::Random random, FieldPointers rest) = 0;
  virtual void blank_rest(FieldPointers rest) = 0;

  template <class Value>
  static void put(std::byte* out, Value value) {
    *reinterpret_cast<Value*>(out) = value;
  }

 private:
  image::PixelTarget target(std::byte* out) const { return pixel_target(pixels_, out); }

  spec::Pixels pixels_;
  image::Renderer renderer_;
};

}  // namespace lockstep::task
