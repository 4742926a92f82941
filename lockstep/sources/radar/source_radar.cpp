// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/source_radar.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <variant>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/sources/file_tree.h"
#include "lockstep/sources/radar/scan.h"
#include "lockstep/sources/radar/timeline.h"
#include "lockstep/task/radar/frame_strip.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr size_t kMostGaps = 20, kLookedAt = 4;
constexpr size_t kKeptBytes = size_t{512} << 20;  // of gridded frames
constexpr double kRainRate = 0.5;                 // mm/h from which on it rains

// Frames that overlapping sequences share are read once, if memory allows. From any thread.
class FrameCache {
 public:
  using Frame = std::variant<GriddedScan, std::string>;  // or what is wrong with it

  template <class Make>
  std::shared_ptr<const Frame> get(size_t run, size_t frame, const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = kept_.find({run, frame});
      if (found != kept_.end()) return found->second;
    }
    std::shared_ptr<const Frame> made;
    try {
      made = std::make_shared<const Frame>(make());
    } catch (const Error& error) {
      if (error.blame() != Blame::user) throw;
      made = std::make_shared<const Frame>(std::string(error.what()));
    }
    const std::lock_guard lock(mutex_);
    if (const auto* grid = std::get_if<GriddedScan>(made.get())) bytes_ += grid->codes.size();
    if (bytes_ > kKeptBytes) {
      kept_.clear();
      bytes_ = 0;
    }
    kept_[{run, frame}] = made;
    return made;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<size_t, size_t>, std::shared_ptr<const Frame>> kept_;
  size_t bytes_ = 0;
};

void check_options(const RadarOptions& options) {
  const auto within = [](const char* name, double value, double low, double high) {
    if (value >= low && value <= high) return;
    throw Error(Blame::user, text(name, " ", value, " is out of range"), text(name, " takes ", low, " to ", high));
  };
  within("--frames", static_cast<double>(options.frames), 1, 512);
  within("--stride", static_cast<double>(options.stride), 0, 512);
  within("--every", options.minutes, 0.1, 1440);
  within("--grid", static_cast<double>(options.grid.side), 4, 4096);
  within("--cell", options.grid.cell / 1000, 0.05, 100);
  within("--rain", options.rain, 0, 1);
  within("--validate", options.validate, 0, 0.95);
  within("--test", options.test, 0, 0.95);
  within("--validate and --test together", options.validate + options.test, 0, 0.95);
}

std::string compact_moment(double seconds) {  // "20240521T215236"
  std::string digits;
  for (const char c : moment_text(seconds)) digits += c == ' ' ? "T" : c >= '0' && c <= '9' ? std::string(1, c) : "";
  return digits;
}

class RadarSource final : public Source {
 public:
  explicit RadarSource(const SourceOptions& options) : options_(options.radar) {
    check_options(options_);
    list_files(options.path);
    Timeline timeline = make_timeline(scans_, options_);
    runs_ = std::move(timeline.runs);
    for (size_t i = 0; i < timeline.gaps.size() && i < kMostGaps; ++i)
      notes_.push_back(text("gap: ", timeline.gaps[i]));
    if (timeline.gaps.size() > kMostGaps) notes_.push_back(text(timeline.gaps.size(), " gaps in all"));
    Windows windows = cut_windows(runs_, options_);
    windows_ = std::move(windows.all);
    if (windows.across > 0) {
      notes_.push_back(text(windows.across, " sequences lie across the border of two parts and are left out"));
    }
    refused_.insert(refused_.end(), windows.short_runs.begin(), windows.short_runs.end());
    for (const Window& window : windows_) {
      const Run& run = runs_[window.run];
      samples_.push_back({text(run.site, "_", compact_moment(run.frames[window.first].seconds)), shards::kNoLabel,
                          window.part, options_.frames * options_.grid.side * options_.grid.side / 8});
    }
    note_list(describe_options());
    note_list(sizes_);  // a volume that was fetched again in whole is another one
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const Window& window = windows_[static_cast<size_t>(i)];
    const Run& run = runs_[window.run];
    task::Frames frames{options_.frames, 0, 0, {}};
    Json times = Json::array();
    for (size_t k = window.first; k < window.first + static_cast<size_t>(options_.frames); ++k) {
      const auto frame = cache_.get(window.run, k, [&] { return grid_frame(run.frames[k]); });
      if (const auto* fault = std::get_if<std::string>(frame.get())) throw Error(Blame::user, *fault);
      const auto& grid = std::get<GriddedScan>(*frame);
      if (k == window.first) {
        frames.height = grid.height;
        frames.width = grid.width;
        check_strip(frames);
      }
      if (grid.height != frames.height || grid.width != frames.width) {
        throw Error(Blame::user, text("wrong grid: ", path_of(run.frames[k]), " has ", grid.width, " x ", grid.height,
                                      " cells, the frames before it ", frames.width, " x ", frames.height));
      }
      frames.codes.insert(frames.codes.end(), grid.codes.begin(), grid.codes.end());
      times.push_back(moment_text(run.frames[k].seconds));
    }
    check_rain(frames);
    Json about = Json::object();
    about["site"] = run.site;
    about["frames"] = options_.frames;
    about["minutes"] = options_.minutes;
    about["grid"] = Json::array({frames.height, frames.width});
    about["cell_metres"] = options_.grid.cell;
    about["times"] = std::move(times);
    return {{"png", strip_file(frames)}, {"json", about.dump(-1)}};
  }

 private:
  void list_files(const base::Path& path) {
    std::error_code error;
    std::vector<base::Path> files{path};
    if (std::filesystem::is_directory(path, error)) {
      files.clear();
      auto listing = FileTree(path).list();
      for (const TreeFile& file : listing.files) files.push_back(path / file.name);
      refused_ = std::move(listing.refused);
    }
    std::map<std::string, base::Path> arrays;
    for (const base::Path& file : files) {
      const std::string name = file.filename().string();
      if (name == "dataset.json" || has_image_name(name)) continue;  // of a synthetic set
      try {
        auto found = list_scans(file, options_.minutes);
        if (found.empty()) refused_.push_back({name, "no radar file that is known"});
        // Frames of arrays have no time of their own: those of a second file of the name would stand for the first's.
        if (!found.empty() && found.front().format == ScanFormat::array) {
          const auto [first, is_new] = arrays.emplace(found.front().site, file);
          if (!is_new) found.clear();
          if (!is_new) refused_.push_back({name, text("has the name of ", first->second.string(), ": rename it")});
        }
        scans_.insert(scans_.end(), found.begin(), found.end());
        std::error_code error;
        sizes_ += text(name, " ", std::filesystem::file_size(file, error), "\n");
      } catch (const Error& fault) {
        if (fault.blame() != Blame::user) throw;
        refused_.push_back({name, fault.what()});
      }
    }
    std::stable_sort(scans_.begin(), scans_.end(), [](const Scan& a, const Scan& b) { return a.seconds < b.seconds; });
  }

  GriddedScan grid_frame(const FrameAt& frame) const {
    if (!options_.composite) return grid_scan(scans_[frame.scans.front()], options_);
    std::vector<Scan> all;
    all.reserve(frame.scans.size());
    for (const size_t number : frame.scans) all.push_back(scans_[number]);
    return grid_composite(all, options_);
  }
  std::string path_of(const FrameAt& frame) const { return scans_[frame.scans.front()].path.string(); }

  // Asked before the other frames are read.
  static void check_strip(const task::Frames& frames) {
    if (frames.count <= image::kMaxPixels / (frames.height * frames.width)) return;
    throw Error(Blame::user,
                text("a sequence of ", frames.count, " frames of ", frames.width, " x ", frames.height,
                     " cells has more than ", image::kMaxPixels, " pixels"),
                "fewer --frames, or a smaller --grid");
  }

  void check_rain(const task::Frames& frames) const {
    if (options_.rain <= 0) return;
    const uint8_t least = task::code_of_dbz(task::RainLaw().dbz(kRainRate));
    const auto wet =
        std::count_if(frames.codes.begin(), frames.codes.end(), [&](uint8_t code) { return code >= least; });
    const double share = static_cast<double>(wet) / static_cast<double>(frames.codes.size());
    if (share >= options_.rain) return;
    throw Error(Blame::user, text("too dry: it rains (", kRainRate, " mm/h) in ", base::percent(share, 2),
                                  " of the cells, --rain asks for ", base::percent(options_.rain, 2)));
  }

  // What of the options decides bytes and is in no name of a sample.
  std::string describe_options() const {
    return text(options_.frames, " ", options_.minutes, " ", options_.grid.side, " ", options_.grid.cell, " ",
                static_cast<int>(options_.gridding), " ", options_.composite, " ", options_.rates, " ", options_.rain);
  }

  RadarOptions options_;
  std::string sizes_;  // of the files that are read
  std::vector<Scan> scans_;
  std::vector<Run> runs_;
  std::vector<Window> windows_;
  mutable FrameCache cache_;
};

}  // namespace

bool looks_like_radar(const SourceOptions& options) {
  std::error_code error;
  if (std::filesystem::is_regular_file(options.path, error)) return is_radar_file(options.path);
  if (!std::filesystem::is_directory(options.path, error)) return false;
  size_t looked_at = 0;
  for (const auto& entry : base::list_folder(options.path)) {
    if (!std::filesystem::is_regular_file(entry, error)) continue;
    const std::string name = entry.filename().string();
    if (name.starts_with(".") || name == "dataset.json" || has_image_name(name)) continue;
    if (is_radar_file(entry)) return true;
    if (++looked_at == kLookedAt) return false;
  }
  return false;
}

std::unique_ptr<Source> open_radar(const SourceOptions& options) {
  return std::make_unique<RadarSource>(options);
}

}  // namespace lockstep::sources
