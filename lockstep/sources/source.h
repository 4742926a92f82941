// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/shards/shard_index.h"
#include "lockstep/sources/file_tree.h"
#include "lockstep/sources/radar/radar_options.h"

namespace lockstep::sources {

enum class Part : int8_t { open = -1, train = 0, validate = 1, test = 2 };  // open: the split decides
constexpr std::string_view kPartNames[] = {"train", "validate", "test"};
// "train", "val", "valid", "validation", "dev", "eval", "test", "testing", "train2017", ...; open for anything else.
Part part_named(std::string_view name);
// The part that a list names at `where`; user error for a word that names none: its sample must not be trained on.
Part named_part(std::string_view word, const std::string& where);

// A sample as a source lists it: what there is, not yet its bytes.
struct SourceSample {
  std::string name;  // as people know it: the path below the source, or "train-images-idx3-ubyte#17"
  int32_t label = shards::kNoLabel;
  Part part = Part::open;
  int64_t bytes = 0;  // about: for the forecast and the cut into shards

  bool operator==(const SourceSample&) const = default;
};

constexpr const char* kLabelImage = "seg.png";  // the member whose pixels are labels, or numbers of objects

struct SourceMember {
  std::string extension;  // "jpg" or "png" (or "" for an image whose content tells), "json", "npy"
  std::string bytes;

  bool operator==(const SourceMember&) const = default;
};

// A collection in somebody's own layout. Listed when it is opened; load() may be called from any thread.
class Source {
 public:
  virtual ~Source() = default;

  // The members of sample `i`, THE image first; without its label. User error when it cannot be read.
  virtual std::vector<SourceMember> load(int64_t i) const = 0;

  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<SourceSample>& samples() const { return samples_; }
  const std::vector<Refused>& refused() const { return refused_; }  // left out while listing
  // Checksums of the lists it was read from, which tell more than samples().
  const std::string& list_sums() const { return list_sums_; }
  const std::vector<std::string>& notes() const { return notes_; }  // what somebody should look at, a sentence each
  double validate_share() const { return validate_share_; }         // where the source has no parts of its own

 protected:
  std::vector<std::string> classes_;
  std::vector<SourceSample> samples_;
  void note_list(std::string_view content);

  std::vector<Refused> refused_;
  std::vector<std::string> notes_;
  std::string list_sums_;
  double validate_share_ = 0.1;
};

struct SourceOptions {
  base::Path path;               // folder or file
  std::string format = "";       // one of source_formats(); empty: found out
  base::Path images = "";        // where the images of a list lie; empty: found out
  std::string path_column = "";  // of a table; empty: found out
  std::string label_column = "";
  std::string part_column = "";
  bool masks = false;  // where the source has outlines of its objects: a "seg.png" member besides
  RadarOptions radar = {};
};

struct SourceFormat {
  std::string name;
  std::string help;  // one line
};
std::vector<SourceFormat> source_formats();

struct OpenedSource {
  std::string format;
  std::unique_ptr<Source> source;
};
// Whether the path holds radar files, whose sequences are parted by time.
bool is_radar(const SourceOptions& options);
// User error: no such path, nothing recognised (says what was looked for), a damaged list (names line and column).
OpenedSource open_source(const SourceOptions& options);

}  // namespace lockstep::sources
