// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/image_files.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/thread.h"
#include "lockstep/image/decode.h"

namespace lockstep::verbs::predict {
namespace {

// No larger than a picture needs; a JPEG is decoded at a fraction of its size.
image::Image decode_for_picture(std::span<const std::byte> file) {
  image::ImageReader reader;
  const image::ImageInfo info = reader.open(file);
  image::PartRequest request{.x = 0, .y = 0, .width = info.width, .height = info.height, .denominator = 1};
  while (request.denominator < 8 && std::max(info.width, info.height) >= 2 * request.denominator * kPictureSize) {
    request.denominator *= 2;
  }
  image::DecodedPart part;
  reader.read(request, part);
  return shrink_to(std::move(part.image), kPictureSize);
}

}  // namespace

struct Parallel::Shared {
  int64_t count = 0;
  std::function<void(int64_t)> body;
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;

  void work() {
    for (int64_t i = next++; i < count; i = next++) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next = count;
      }
    }
  }
};

Parallel::Parallel(int64_t count, int64_t threads, std::function<void(int64_t)> body)
    : shared_(std::make_shared<Shared>()) {
  shared_->count = count;
  shared_->body = std::move(body);
  for (int64_t i = 0; i < std::min(count, threads); ++i) {
    threads_.emplace_back([shared = shared_] {
      base::leave_signals_to_others();
      ::pthread_setname_np(::pthread_self(), "image files");
      shared->work();
    });
  }
}

Parallel::~Parallel() = default;

void Parallel::wait() {
  threads_.clear();  // joins
  if (shared_->error) std::rethrow_exception(shared_->error);
}

ImageFiles::ImageFiles(const loader::Collection& collection, Pictures pictures)
    : collection_(collection), pictures_(pictures), store_(loader::open_store(collection)) {}

results::FileState ImageFiles::state_of(int64_t id) const {
  return results::look_at_file(store_->path(store_->locate(id).file));
}

ImageFile ImageFiles::read(int64_t id) const {
  ImageFile file;
  file.path = results::readable_name(collection_.name_of(id));
  file.state = state_of(id);  // before its bytes: what is written meanwhile is newer
  std::vector<std::byte> memory;
  try {
    const auto bytes = store_->split(id, store_->read(id, memory)).front();
    file.sha256 = base::sha256_hex(bytes);
    if (pictures_ == Pictures::decode) file.picture = decode_for_picture(bytes);
  } catch (const base::Error& error) {
    if (error.blame() != base::Blame::user) throw;  // why an image is bad is for the loader to say
  }
  return file;
}

image::Image shrink_to(image::Image image, int64_t most) {
  const int64_t longer = std::max(image.width, image.height);
  if (longer <= most) return image;
  return image::resize_image(image, std::max<int64_t>(1, image.width * most / longer),
                             std::max<int64_t>(1, image.height * most / longer));
}

}  // namespace lockstep::verbs::predict
