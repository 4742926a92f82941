// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/image/image.h"
#include "lockstep/loader/collection.h"
#include "lockstep/loader/store.h"
#include "lockstep/results/record.h"

namespace lockstep::verbs::predict {

// The file behind an image, as far as its record and its picture need it.
struct ImageFile {
  std::string path;  // readable_name()
  results::FileState state;
  std::string sha256;    // empty: it could not be read
  image::Image picture;  // at most kPictureSize wide and high; empty: not asked for, or it could not be decoded
};

constexpr int64_t kPictureSize = 1024, kThumbnailSize = 224;  // pixels of the longer side

// Does body(0) ... body(count - 1) on threads of its own; the first error is thrown by wait().
class Parallel {
 public:
  Parallel(int64_t count, int64_t threads, std::function<void(int64_t)> body);
  ~Parallel();
  void wait();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  std::vector<std::jthread> threads_;
};

// Looks at the files of a collection a second time, beside the loader: the loader keeps no bytes.
class ImageFiles {
 public:
  enum class Pictures { none, decode };
  ImageFiles(const loader::Collection& collection, Pictures pictures);  // which outlives it

  ImageFile read(int64_t id) const;  // from any thread; machine error where the file system fails
  results::FileState state_of(int64_t id) const;

 private:
  const loader::Collection& collection_;
  Pictures pictures_;
  std::unique_ptr<loader::Store> store_;
};

// The image no larger than `most` on its longer side.
image::Image shrink_to(image::Image image, int64_t most);

}  // namespace lockstep::verbs::predict
