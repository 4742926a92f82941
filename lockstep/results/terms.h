// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/spec/job.h"

namespace lockstep::results {

// What lies where: results.jsonl, results.html and the folder results.files. Plain paths, nothing is touched.
struct ResultPaths {
  base::Path to;  // results.jsonl

  base::Path beside(const char* extension) const { return base::Path(to).replace_extension(extension); }
  base::Path page() const { return beside(".html"); }
  base::Path files() const { return beside(".files"); }  // held like a run folder: lock, journal, chain
  base::Path terms() const { return files() / "terms.json"; }
  base::Path parts() const { return files() / "parts"; }  // while it is worked on
  base::Path pictures() const { return files() / "pictures"; }
  base::Path thumbnails() const { return files() / "thumbnails"; }
};

// Where the picture of an image goes, below ResultPaths::pictures(): its path below `root` (empty: its whole path) with
// ".jpg" behind its own extension. Never outside of that folder.
std::string picture_name(const std::string& path, const std::string& root);
// Below ResultPaths::thumbnails(): by the image's content.
std::string thumbnail_name(const std::string& sha256);

// Everything but the images that a record depends on. Records of one results file have these in common.
struct Terms {
  std::string name;  // of the job
  std::string weights_sha256;
  base::Json keys;  // those of the job that decide a prediction, and options: "data.image_size" -> 224
  std::vector<std::string> classes = {};

  // "pets@3f2a9c0d5b7e1a44": stands in every record. Not by the classes, which are those of the weights.
  std::string model() const;
  bool operator==(const Terms&) const = default;
};

// Of a job and the weights that its network has now. `top` as `predict --top` has it.
Terms terms_of(const spec::Job& job, const base::Path& weights, std::vector<std::string> classes, int64_t top);

// What differs, in words: "data.image_size was 32, now 48"; empty: a record is the same under both.
std::string difference(const Terms& before, const Terms& now);

void write_terms(const ResultPaths& paths, const Terms& terms);
// User error that names the difference when records of other terms were begun there; nothing where none were.
void check_terms(const ResultPaths& paths, const Terms& now);

// What to do about a results file that has other records.
std::string fix_for_other_records();

}  // namespace lockstep::results
