// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/pack_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/run/order.h"
#include "lockstep/shards/tar.h"
#include "lockstep/sources/source_table.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr size_t kMaxKeyName = 60;  // of the source's name in a key: the member's name stays below 100 bytes

std::string padded_number(int64_t number, size_t digits) {
  const std::string plain = std::to_string(number);
  return std::string(plain.size() < digits ? digits - plain.size() : 0, '0') + plain;
}

int64_t share_of(int64_t count, double share) {
  return static_cast<int64_t>(std::llround(static_cast<double>(count) * share));
}

// A sample of no part among those that have one would be trained on, wherever it comes from.
void check_parts(const Source& source) {
  const auto& samples = source.samples();
  const auto is_open = [](const SourceSample& sample) { return sample.part == Part::open; };
  const auto num_open = std::count_if(samples.begin(), samples.end(), is_open);
  if (num_open == 0 || num_open == static_cast<int64_t>(samples.size())) return;
  const auto open = std::find_if(samples.begin(), samples.end(), is_open);
  const auto placed = std::find_if_not(samples.begin(), samples.end(), is_open);
  throw Error(
      Blame::user,
      text("the source names no part for ", num_open, " of ", samples.size(), " samples, the first is ", open->name,
           "; ", placed->name, " belongs to ", kPartNames[static_cast<size_t>(placed->part)]),
      "name their files or folders by the part: train, validate (val, dev, eval) or test; or prepare them alone");
}

// How many of each class go to a part: rounded class by class, as long as that gives any; a set of small classes would
// get an empty part, there the rounding is carried on from class to class, one sample of a class at most.
class Shares {
 public:
  // `ahead`: samples by which it gives earlier; half a one lets two parts take from different classes.
  Shares(const std::map<int32_t, std::vector<size_t>>& classes, double share, double ahead)
      : share_(share), ahead_(ahead) {
    int64_t all = 0, rounded = 0;
    for (const auto& [label, members] : classes) {
      const auto count = static_cast<int64_t>(members.size());
      all += count;
      rounded += share_of(count, share);
    }
    total_ = share_of(all, share);
    carries_ = rounded == 0 && total_ > 0;
  }
  // Of a class of `count` samples, `spare` of which may be taken. What a class cannot give the next one gives where
  // the rounding is carried on; elsewhere it stays with training: other classes keep their share.
  int64_t next(int64_t count, int64_t spare) {
    if (!carries_) return std::min(share_of(count, share_), spare);
    seen_ += count;
    const int64_t due = std::min<int64_t>(std::llround(static_cast<double>(seen_) * share_ + ahead_), total_);
    const int64_t given = std::min({due - given_, spare, int64_t{1}});
    given_ += given;
    return given;
  }

 private:
  double share_, ahead_;
  int64_t total_ = 0, seen_ = 0, given_ = 0;
  bool carries_ = false;
};

// The part of every sample: its own, or by a seeded shuffle within its class.
std::vector<Part> assign_parts(const Source& source, const PackRequest& request) {
  check_parts(source);
  const auto& samples = source.samples();
  std::vector<Part> parts;
  bool has_own = false;
  std::map<int32_t, std::vector<size_t>> open;
  for (size_t i = 0; i < samples.size(); ++i) {
    parts.push_back(samples[i].part);
    if (samples[i].part == Part::open) {
      open[samples[i].label].push_back(i);
    } else {
      has_own = true;
    }
  }
  if (has_own && (request.validate || request.test > 0)) {  // asked for: taken from the source's training part
    for (size_t i = 0; i < samples.size(); ++i) {
      if (parts[i] == Part::train) open[samples[i].label].push_back(i);
    }
  }
  const double validate = request.validate.value_or(has_own ? 0 : source.validate_share());
  const uint64_t seed = base::derive_seed(static_cast<uint64_t>(request.seed), "split");
  Shares validate_shares(open, validate, 0), test_shares(open, request.test, 0.5);
  for (const auto& [label, members] : open) {
    const auto count = static_cast<int64_t>(members.size());
    const int64_t spare = count - 1;  // a class that is asked for in validation has been trained on
    const int64_t num_validate = validate_shares.next(count, spare);
    const int64_t num_test = test_shares.next(count, spare - num_validate);
    const run::Order order(count, static_cast<int64_t>(seed >> 1), label + 1);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t position = order(i);
      parts[members[static_cast<size_t>(i)]] = position < num_validate              ? Part::validate
                                               : position < num_validate + num_test ? Part::test
                                                                                    : Part::train;
    }
  }
  return parts;
}

int64_t estimate_tar_bytes(const SourceSample& sample, double growth) {
  const auto image = static_cast<int64_t>(static_cast<double>(sample.bytes) * growth);
  return 2 * shards::kTarBlock + shards::padded_to_block(image) +
         (sample.label == shards::kNoLabel ? 0 : shards::kTarBlock);
}

}  // namespace

std::vector<PlannedShard> plan_shards(const Source& source, const PackRequest& request, double growth) {
  std::array<std::vector<int64_t>, 3> members;
  const std::vector<Part> parts = assign_parts(source, request);
  for (size_t i = 0; i < parts.size(); ++i) {
    members[static_cast<size_t>(parts[i])].push_back(static_cast<int64_t>(i));
  }
  std::vector<PlannedShard> shards;
  const uint64_t seed = base::derive_seed(static_cast<uint64_t>(request.seed), "shuffle");
  for (size_t part = 0; part < members.size(); ++part) {
    const auto count = static_cast<int64_t>(members[part].size());
    if (count == 0) continue;
    const run::Order order(count, static_cast<int64_t>(seed >> 1), static_cast<int64_t>(part));
    int64_t number = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t id = members[part][static_cast<size_t>(request.keep_order ? i : order(i))];
      const int64_t bytes = estimate_tar_bytes(source.samples()[static_cast<size_t>(id)], growth);
      if (i == 0 || shards.back().expected_bytes + bytes > request.shard_bytes) {
        shards.push_back({static_cast<Part>(part), text(kPartNames[part], "-", padded_number(number++, 6)), {}, 0});
      }
      shards.back().samples.push_back(id);
      shards.back().expected_bytes += bytes;
    }
  }
  return shards;
}

std::string key_of(int64_t number, std::string_view name) {
  name = name.substr(name.rfind('/') + 1);
  name = name.substr(0, std::min(name.rfind('.'), name.size()));
  std::string kept;
  for (const char c : name.substr(0, kMaxKeyName)) {
    const auto byte = static_cast<unsigned char>(c);
    kept += byte < 128 && (std::isalnum(byte) || c == '-' || c == '_') ? c : '_';
  }
  return text(padded_number(number, 8), "-", kept);
}

base::Json describe(const PackRequest& request, const OpenedSource& opened) {
  const Source& source = *opened.source;
  base::Sha256 list;
  for (const auto& sample : source.samples()) {  // lengths first: no two lists look the same
    list.update(text(sample.name.size(), ":", sample.name, ":", sample.label, ":", static_cast<int>(sample.part), ":",
                     sample.bytes, "\n"));
  }
  base::Json all = base::Json::object();
  all["format"] = 2;
  all["kind"] = "shards";
  all["source"] = request.source.path.string();
  all["source_format"] = opened.format;
  all["source_samples"] = source.samples().size();
  all["source_list_sha256"] = list.hex();
  if (!source.list_sums().empty()) all["source_lists_crc32c"] = source.list_sums();
  all["classes"] = base::Json::array_of(source.classes());
  all["seed"] = request.seed;
  if (request.keep_order) all["order"] = "the source's";
  all["validate_share"] = request.validate ? base::Json(*request.validate) : base::Json(nullptr);
  all["test_share"] = request.test;
  all["shard_bytes"] = request.shard_bytes;
  if (request.source.masks) all["masks"] = true;  // absent before there were any
  all["max_side"] = request.image.max_side;
  all["quality"] = request.image.quality;
  all["restart_markers"] = request.image.restarts;
  return all;
}

namespace {

// What is written must not be read as samples when the command is given again.
void check_apart(const base::Path& source, const base::Path& folder) {
  std::error_code error;
  const std::string from = std::filesystem::weakly_canonical(source, error).string() + "/";
  const std::string to =
      std::filesystem::weakly_canonical(std::filesystem::absolute(folder, error), error).string() + "/";
  if (!std::filesystem::is_directory(source, error) || !to.starts_with(from)) return;
  throw Error(Blame::user, text("--to ", folder.string(), " lies within SOURCE ", source.string()),
              "give a folder beside it");
}

}  // namespace

void check_samples(const PackRequest& request, const Source& source) {
  if (!source.samples().empty()) return;
  const auto& refused = source.refused();
  const std::string first = refused.empty() ? ""
                                            : text("; ", refused.size(), " were left out, the first is ",
                                                   base::quote_json(refused[0].name), ": ", refused[0].reason);
  const bool leads_out = !refused.empty() && refused[0].reason.ends_with(kLeadsOut);
  throw Error(Blame::user, text(request.source.path.string(), ": no sample in it", first),
              refused.empty() ? "check SOURCE"
              : leads_out     ? kPathsFix
                              : "correct that, or say with --images where the images lie");
}

void check_request(const PackRequest& request) {
  check_apart(request.source.path, request.folder);
  const auto within = [](const char* name, double value, double low, double high, const char* range) {
    if (value >= low && value <= high) return;
    throw Error(Blame::user, text(name, " ", value, " is out of range"), text(name, " takes ", range));
  };
  const double validate = request.validate.value_or(0);
  within("--validate", validate, 0, 0.9, "a share from 0 to 0.9");
  within("--test", request.test, 0, 0.9, "a share from 0 to 0.9");
  within("--validate and --test together", validate + request.test, 0, 0.95, "up to 0.95");
  within("--max-side", static_cast<double>(request.image.max_side), 0, 1 << 16, "0 to 65536 pixels");
  within("--quality", request.image.quality, 1, 100, "1 to 100");
  within("--shard-size", static_cast<double>(request.shard_bytes), 1 << 16, 1e12, "64 KiB to 1 TB");
  within("--threads", static_cast<double>(request.threads), 0, 1024, "0 to 1024");
}

}  // namespace lockstep::sources
