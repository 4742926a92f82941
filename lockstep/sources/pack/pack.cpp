// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/pack.h"

#include <optional>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/shards/original_names.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/site/cores.h"
#include "lockstep/sources/pack/duplicates.h"
#include "lockstep/sources/pack/folder_lock.h"
#include "lockstep/sources/pack/folder_state.h"
#include "lockstep/sources/pack/ordered_work.h"
#include "lockstep/sources/pack/probe.h"
#include "lockstep/sources/pack/shard_note.h"
#include "lockstep/sources/pack/sheet.h"
#include "lockstep/sources/pack/verify.h"
#include "lockstep/task/vocabulary.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

constexpr size_t kMostRefusedListed = 1000;
constexpr int64_t kAheadPerThread = 16;

class Packer {
 public:
  // Looks which shards are there; of the others every rank takes its share.
  Packer(const PackRequest& request, const Source& source, const std::vector<PlannedShard>& shards, const Team& team)
      : request_(request), source_(source), shards_(shards), reports_(shards.size()) {
    int64_t missing = 0;
    for (size_t i = 0; i < shards.size(); ++i) {
      reports_[i] = finished_before(request_.folder, shards[i]);
      if (reports_[i]) {
        ++kept_;
      } else if (missing++ % team.size == team.rank) {
        for (const int64_t id : shards[i].samples) todo_.push_back({i, id});
      }
    }
  }

  int64_t kept() const { return kept_; }

  void run(int64_t threads, const std::function<void(const PackProgress&)>& progress) {
    const double start = base::steady_seconds();
    PackProgress state{.samples_left = static_cast<int64_t>(todo_.size())};
    work_in_order<Made>(
        state.samples_left, {threads, threads * kAheadPerThread},
        [this](int64_t i) { return make(todo_[static_cast<size_t>(i)].id); },
        [&](int64_t i, Made&& made) {
          state.bytes_in += made.sample ? made.sample->bytes_in : 0;
          take(i, std::move(made));
          ++state.samples_done;
          --state.samples_left;
          state.seconds = base::steady_seconds() - start;
          if (progress) progress(state);
        });
  }

  // REQUIRES: every rank has run its share
  std::vector<ShardReport> reports() {
    std::vector<ShardReport> all;
    for (size_t i = 0; i < shards_.size(); ++i) {
      if (!reports_[i]) reports_[i] = finished_before(request_.folder, shards_[i]);
      if (!reports_[i]) {
        throw Error(Blame::machine,
                    text(note_path(request_.folder, shards_[i]).string(),
                         ": another rank has finished it, but it is not seen here"),
                    "the ranks need a file system that all nodes share; the same command again completes the set");
      }
      all.push_back(std::move(*reports_[i]));
    }
    return all;
  }

 private:
  struct ToPack {
    size_t shard;
    int64_t id;
  };
  struct Made {  // a finished sample, or why there is none
    std::optional<FinishedSample> sample;
    ObjectCounts objects;
    std::string reason;
  };

  Made make(int64_t id) const {
    try {
      Made made{finish_sample(source_.load(id), request_.image), {}, ""};
      made.objects = count_objects(*made.sample, source_.classes().size());
      return made;
    } catch (const Error& error) {
      if (error.blame() != Blame::user) throw;
      return {std::nullopt, {}, error.what()};
    }
  }

  void take(int64_t i, Made&& made) {
    const auto [number, id] = todo_[static_cast<size_t>(i)];
    const PlannedShard& shard = shards_[number];
    const SourceSample& listed = source_.samples()[static_cast<size_t>(id)];
    if (!reports_[number]) reports_[number].emplace();
    ShardReport& report = *reports_[number];
    if (made.sample) {
      add(shard, id, made, report);
    } else {
      report.refused.push_back({listed.name, made.reason});
    }
    if (id == shard.samples.back()) finish(shard, report);
  }

  void add(const PlannedShard& shard, int64_t id, const Made& made, ShardReport& report) {
    const SourceSample& listed = source_.samples()[static_cast<size_t>(id)];
    const FinishedSample& sample = *made.sample;
    if (!writer_) writer_.emplace(part_folder(request_.folder, shard), shard.name);
    const std::string key = key_of(id, listed.name), label = std::to_string(listed.label);
    std::vector<shards::NewMember> members;
    for (const auto& member : sample.members) members.push_back({member.extension, member.bytes});
    if (listed.label != shards::kNoLabel) members.insert(members.begin() + 1, {"cls", label});
    try {
      writer_->add({key, listed.label, sample.content_hash}, members);
      report.statistics.add(sample, listed.label, made.objects);
    } catch (const Error& error) {
      if (error.blame() != Blame::user) throw;
      report.refused.push_back({listed.name, error.what()});
    }
  }

  void finish(const PlannedShard& shard, ShardReport& report) {
    report.summary.name = shard.name;
    if (writer_ && report.statistics.num_samples > 0) report.summary = writer_->finish();
    writer_.reset();
    base::write_json(note_path(request_.folder, shard), report.to_json());
  }

  const PackRequest& request_;
  const Source& source_;
  const std::vector<PlannedShard>& shards_;
  std::vector<std::optional<ShardReport>> reports_;
  std::vector<ToPack> todo_;
  int64_t kept_ = 0;
  std::optional<shards::ShardWriter> writer_;  // of the shard at hand
};

void add_refused(base::Json& dataset, const char* key, const std::vector<Refused>& refused) {
  base::Json list = base::Json::array();
  for (size_t i = 0; i < refused.size() && i < kMostRefusedListed; ++i) {
    base::Json one = base::Json::object();
    one["name"] = refused[i].name;
    one["reason"] = refused[i].reason;
    list.push_back(std::move(one));
  }
  dataset[text("num_", key)] = refused.size();
  dataset[key] = std::move(list);
}

// What the source calls each sample, beside the shards: their keys keep a part of it only.
void write_names(const Path& folder, const Source& source, const std::vector<PlannedShard>& shards) {
  std::map<Part, std::string> lines;
  for (const auto& shard : shards) {
    for (const int64_t id : shard.samples) {
      const std::string& name = source.samples()[static_cast<size_t>(id)].name;
      lines[shard.part] += shards::name_line(key_of(id, name), name);
    }
  }
  for (const auto& [part, text] : lines) base::write_file(folder / part_name(part) / shards::kNames, text);
}

// The lists of the shards, the contact sheet, and what dataset.json will say.
base::Json conclude(const PackRequest& request, const Source& source, const std::vector<PlannedShard>& shards,
                    const std::vector<ShardReport>& reports, base::Json dataset) {
  std::map<Part, shards::ShardList> lists;
  std::map<Part, Statistics> statistics;
  std::vector<Refused> unreadable;
  base::Sha256 fingerprint;
  for (size_t i = 0; i < shards.size(); ++i) {
    const ShardReport& report = reports[i];
    unreadable.insert(unreadable.end(), report.refused.begin(), report.refused.end());
    if (report.summary.num_samples == 0) continue;
    lists[shards[i].part].shards.push_back(report.summary);
    statistics[shards[i].part].add(report.statistics);
    fingerprint.update(text(part_name(shards[i].part), "/", report.summary.name, " ", report.summary.tar_bytes, " ",
                            report.summary.tar_crc32c, "\n"));
  }
  if (lists.empty()) {
    const std::string first =
        unreadable.empty() ? "" : text("; ", unreadable.front().name, ": ", unreadable.front().reason);
    throw Error(Blame::user, text(request.source.path.string(), ": not one readable sample", first),
                "check the source");
  }
  std::vector<Part> parts;
  base::Json described = base::Json::object();
  for (auto& [part, list] : lists) {
    parts.push_back(part);
    list.name = part_name(part);
    list.classes = source.classes();
    Statistics& counted = statistics[part];
    list.most_objects = counted.most_objects;
    shards::write_shard_list(request.folder / part_name(part), list);
    if (!counted.pairs.empty()) {
      base::write_file(request.folder / part_name(part) / kClassPairs,
                       counted.pairs.csv(source.classes(), counted.num_samples));
    }
    if (!counted.columns.empty()) {
      base::write_file(request.folder / part_name(part) / kColumnWeights, counted.columns.csv(source.classes()));
    }
    if (!counted.words.empty()) {
      base::write_file(request.folder / part_name(part) / task::kWordCounts, counted.words.csv());
    }
    counted.per_class.resize(source.classes().size());
    if (!counted.objects_per_class.empty()) counted.objects_per_class.resize(source.classes().size());
    base::Json one = counted.for_people();
    one["shards"] = list.shards.size();
    int64_t tar_bytes = 0;
    for (const auto& shard : list.shards) tar_bytes += shard.tar_bytes;
    one["tar_bytes"] = tar_bytes;
    described[part_name(part)] = std::move(one);
  }
  dataset["parts"] = std::move(described);
  dataset["fingerprint"] = fingerprint.hex();
  write_names(request.folder, source, shards);
  Duplicates duplicates = find_duplicates(request.folder, parts, source.samples());
  if (duplicates.num_groups > 0) base::write_file(request.folder / kDuplicates, duplicates.to_text());
  dataset["duplicates"] = duplicates.to_json();
  if (!source.notes().empty()) dataset["notes"] = base::Json::array_of(source.notes());
  add_refused(dataset, "unreadable", unreadable);
  add_refused(dataset, "left_out", source.refused());
  if (const std::string sheet = draw_sheet(request.folder / part_name(parts.front())); !sheet.empty()) {
    base::write_file(request.folder / "contact.jpg", sheet);
  }
  return dataset;
}

// The lock, the note of what is being made, the folders; away with what a killed process left.
void begin(const Path& folder, const base::Json& description, const std::vector<PlannedShard>& shards,
           std::optional<FolderLock>& lock) {
  lock.emplace(folder);
  mark_begun(folder, description);
  for (const auto& shard : shards) base::make_folders(folder / part_name(shard.part));
  for (const char* part : {"", kWork, "train", "validate", "test"}) remove_litter(folder / part);
}

}  // namespace

void check_shards_are_there(const Path& folder, const base::Json& dataset) {
  for (const auto& part : dataset.at("parts").members()) {
    try {
      shards::ShardSet(folder / part.key);
    } catch (const Error& error) {
      throw Error(error.blame(), text(folder.string(), " was complete and is damaged: ", error.what()),
                  text("the same command with --repair makes damaged shards again; lockstep prep --verify ",
                       base::shell_path(folder.string()), " names them"));
    }
  }
}

Packed pack(const PackRequest& request, const std::function<void(const PackProgress&)>& progress, const Team& team) {
  const double start = base::steady_seconds();
  check_request(request);
  const OpenedSource opened = open_source(request.source);
  const Source& source = *opened.source;
  check_samples(request, source);
  const base::Json description = describe(request, opened);
  Packed packed;
  packed.was_complete = is_complete(request.folder, description);
  team.barrier();  // nobody begins before everybody has looked
  if (packed.was_complete) {
    if (team.rank > 0) return packed;
    packed.dataset = base::read_json(request.folder / kDatasetComplete, {.max_bytes = size_t{1} << 30});
    check_shards_are_there(request.folder, packed.dataset);
    remove_work(request.folder);  // killed between dataset.json and this
    return packed;
  }
  const double growth = expected_growth(source, request.image);
  const std::vector<PlannedShard> shards = plan_shards(source, request, growth);
  std::optional<FolderLock> lock;
  if (team.rank == 0) begin(request.folder, description, shards, lock);
  team.barrier();
  Packer packer(request, source, shards, team);
  team.barrier();  // all have seen the same shards missing
  packed.shards_kept = packer.kept();
  packer.run(request.threads > 0 ? request.threads : site::usable_cores(), progress);
  team.barrier();
  if (team.rank > 0) return packed;
  packed.dataset = conclude(request, source, shards, packer.reports(), description);
  base::write_json(request.folder / kDatasetComplete, packed.dataset);
  remove_work(request.folder);
  packed.seconds = base::steady_seconds() - start;
  return packed;
}

namespace {

// What the lists say of each shard, by its name. User error where they are not those that dataset.json tells of.
std::map<std::string, shards::ShardSummary> listed_shards(const Path& folder, const base::Json& dataset) {
  std::map<std::string, shards::ShardSummary> all;
  base::Sha256 fingerprint;
  std::string fault = "they are not those that dataset.json tells of";
  try {
    for (const auto& part : dataset.at("parts").members()) {
      for (const auto& shard : shards::read_shard_list(folder / part.key).shards) {
        all[shard.name] = shard;
        fingerprint.update(text(part.key, "/", shard.name, " ", shard.tar_bytes, " ", shard.tar_crc32c, "\n"));
      }
    }
    if (fingerprint.hex() == dataset.at("fingerprint").as_string()) return all;
  } catch (const Error& error) {
    if (error.blame() != Blame::user) throw;
    fault = error.what();
  }
  throw Error(Blame::user, text(folder.string(), ": its lists of shards are lost: ", fault),
              text("copy the folder again, or make it again: rm -r ", base::shell_path(folder.string()),
                   ", then the command without --repair"));
}

std::vector<PlannedShard> find_damaged(const PackRequest& request, const std::vector<PlannedShard>& planned,
                                       const std::map<std::string, shards::ShardSummary>& listed, int64_t threads) {
  std::vector<PlannedShard> damaged;
  work_in_order<bool>(
      static_cast<int64_t>(planned.size()), {threads, threads},
      [&](int64_t i) {
        const PlannedShard& shard = planned[static_cast<size_t>(i)];
        const auto found = listed.find(shard.name);  // not listed: every sample of it was refused
        return found != listed.end() && !shard_faults(part_folder(request.folder, shard), found->second).empty();
      },
      [&](int64_t i, bool&& is_damaged) {
        if (is_damaged) damaged.push_back(planned[static_cast<size_t>(i)]);
      });
  return damaged;
}

}  // namespace

Repaired repair(const PackRequest& request, const std::function<void(const PackProgress&)>& progress) {
  const double start = base::steady_seconds();
  check_request(request);
  const OpenedSource opened = open_source(request.source);
  const Source& source = *opened.source;
  check_samples(request, source);
  if (!is_complete(request.folder, describe(request, opened))) {
    throw Error(Blame::user, text(request.folder.string(), ": no complete dataset, there is nothing to repair"),
                "the command without --repair makes or completes it");
  }
  const auto listed =
      listed_shards(request.folder, base::read_json(request.folder / kDatasetComplete, {.max_bytes = size_t{1} << 30}));
  const int64_t threads = request.threads > 0 ? request.threads : site::usable_cores();
  const auto damaged =
      find_damaged(request, plan_shards(source, request, expected_growth(source, request.image)), listed, threads);
  Repaired repaired;
  repaired.num_shards = std::ssize(listed);
  if (!damaged.empty()) {
    const FolderLock lock(request.folder);
    for (const auto& shard : damaged) {
      std::error_code ignored;
      base::make_folders(part_folder(request.folder, shard));
      remove_litter(part_folder(request.folder, shard));
      std::filesystem::remove(note_path(request.folder, shard), ignored);  // of a repair that was killed
    }
    Packer packer(request, source, damaged, {});
    packer.run(threads, progress);
    for (const auto& report : packer.reports()) {
      repaired.damaged.push_back(report.summary.name);
      if (report.summary == listed.at(report.summary.name)) continue;
      throw Error(Blame::user,
                  text(request.source.path.string(), ": ", report.summary.name,
                       " comes out otherwise than when the set was prepared: the source has changed, or the program"),
                  text("prepare it again: rm -r ", base::shell_path(request.folder.string()),
                       ", then the command without --repair"));
    }
  }
  remove_work(request.folder);
  repaired.seconds = base::steady_seconds() - start;
  return repaired;
}

}  // namespace lockstep::sources
