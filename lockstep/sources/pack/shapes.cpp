// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/shapes.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/contact_sheet.h"
#include "lockstep/image/decode.h"
#include "lockstep/run/order.h"
#include "lockstep/site/cores.h"
#include "lockstep/sources/pack/drawn_set.h"
#include "lockstep/sources/pack/folder_state.h"
#include "lockstep/sources/synth.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

constexpr int64_t kValidateShare = 5;  // one of five
constexpr int kQuality = 90;

void check(const ShapesRequest& request) {
  const auto within = [](const char* name, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return;
    throw Error(Blame::user, text(name, " ", value, " is out of range"), text(name, " takes ", low, " to ", high));
  };
  within("--classes", request.classes, 2, kMaxShapes);
  within("--count", request.count, kValidateShare * request.classes, 10'000'000);
  within("--image-size", request.image_size, 16, 1024);
  within("--threads", request.threads, 0, 1024);
}

base::Json description(const ShapesRequest& request) {
  base::Json all = base::Json::object();
  all["format"] = 1;
  all["kind"] = "shapes";
  all["count"] = request.count;
  all["classes"] = base::Json::array_of(shape_names(request.classes));
  all["seed"] = request.seed;
  all["image_size"] = request.image_size;
  return all;
}

// Which image is which: labels in turn, so that classes are of equal size; of each class a fifth is drawn for
// validation by a seeded shuffle.
class Plan {
 public:
  explicit Plan(const ShapesRequest& request) : request_(request), classes_(shape_names(request.classes)) {
    for (int64_t label = 0; label < request.classes; ++label)
      shuffles_.emplace_back(size_of(label), request.seed, label);
  }
  const std::vector<std::string>& classes() const { return classes_; }
  const std::string& name_of(int64_t index) const { return classes_[static_cast<size_t>(index % request_.classes)]; }
  bool is_for_validation(int64_t index) const {
    const int64_t label = index % request_.classes;
    return shuffles_[static_cast<size_t>(label)](index / request_.classes) < size_of(label) / kValidateShare;
  }
  Path path_of(int64_t index) const {
    const std::string digits = std::to_string(index);
    const std::string number = std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
    return request_.folder / (is_for_validation(index) ? "validate" : "train") / name_of(index) / (number + ".jpg");
  }

 private:
  int64_t size_of(int64_t label) const { return (request_.count - label + request_.classes - 1) / request_.classes; }

  const ShapesRequest& request_;
  std::vector<std::string> classes_;
  std::vector<run::Order> shuffles_;
};

bool holds(const Path& path, const std::string& content) {
  std::error_code error;
  return std::filesystem::file_size(path, error) == content.size() && !error && base::read_file(path) == content;
}

// Draws every image on `num_threads` threads; digests come back in order.
std::vector<base::Sha256::Digest> draw_all(const ShapesRequest& request, const Plan& plan, int64_t num_threads,
                                           const std::function<void(int64_t, int64_t)>& progress) {
  std::vector<base::Sha256::Digest> digests(static_cast<size_t>(request.count));
  std::atomic<int64_t> next = 0;
  std::mutex mutex;  // guards what stands below
  int64_t done = 0;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (int64_t i = next++; i < request.count; i = next++) {
        const auto image = draw_shape(plan.name_of(i), request.image_size, request.seed, i);
        const std::string file = image::encode_jpeg(image, kQuality);
        base::Sha256 hash;
        hash.update(file);
        digests[static_cast<size_t>(i)] = hash.digest();
        if (const Path path = plan.path_of(i); !holds(path, file)) place_file(path, file);
        const std::lock_guard lock(mutex);
        if (++done; progress) progress(done, request.count);
      }
    } catch (...) {
      next = request.count;  // the others stop as well
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  for (int64_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  if (error) std::rethrow_exception(error);
  return digests;
}

void write_contact_sheet(const ShapesRequest& request, const Plan& plan) {
  constexpr int64_t kColumns = 12;
  std::vector<image::SheetRow> rows;
  for (int64_t label = 0; label < request.classes; ++label) {
    image::SheetRow row{plan.classes()[static_cast<size_t>(label)], {}};
    for (int64_t i = 0; i < kColumns && label + i * request.classes < request.count; ++i) {
      row.pictures.push_back(draw_shape(row.name, request.image_size, request.seed, label + i * request.classes));
    }
    rows.push_back(std::move(row));
  }
  place_file(request.folder / "contact.jpg", image::encode_jpeg(image::contact_sheet(rows, 64), 92));
}

}  // namespace

Dataset prepare_shapes(const ShapesRequest& request, const std::function<void(int64_t, int64_t)>& progress) {
  check(request);
  Dataset dataset{.folder = request.folder, .classes = shape_names(request.classes)};
  if (auto complete = complete_set(dataset, description(request))) return *complete;
  return write_set(std::move(dataset), description(request), [&](Dataset& set, base::Json& file) {
    const Plan plan(request);
    for (const char* part : {"train", "validate"}) {
      for (const auto& name : plan.classes()) base::make_folders(request.folder / part / name);
    }
    base::Sha256 all;
    const int64_t num_threads = request.threads > 0 ? request.threads : site::usable_cores();
    for (const auto& digest : draw_all(request, plan, num_threads, progress))
      all.update(std::as_bytes(std::span(digest)));
    for (int64_t i = 0; i < request.count; ++i) ++(plan.is_for_validation(i) ? set.num_validate : set.num_train);
    set.fingerprint = all.hex();
    write_contact_sheet(request, plan);
    file["train"] = set.num_train;
    file["validate"] = set.num_validate;
  });
}

base::Json Dataset::to_json() const {
  base::Json all = base::Json::object();
  all["folder"] = folder.string();
  all["classes"] = base::Json::array_of(classes);
  all["train"] = num_train;
  all["validate"] = num_validate;
  all["fingerprint"] = fingerprint;
  all["was_complete"] = was_complete;
  all["seconds"] = seconds;
  return all;
}

}  // namespace lockstep::sources
