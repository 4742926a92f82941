// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/allocator_recording.h"

#include <algorithm>
#include <charconv>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/recording_text.h"

namespace lockstep::forecast {
namespace {

using base::text;
using Kind = AllocatorEventKind;

constexpr int64_t kUnit = 512;  // addresses are multiples of it
constexpr int64_t kMaxAddress = int64_t{1} << 60;
constexpr size_t kLineWidth = 110;

struct SettingMember {
  const char* key;
  int64_t AllocatorSettings::*member;
};
constexpr SettingMember kSettings[] = {{"max_split_size", &AllocatorSettings::max_split_size},
                                       {"roundup_power2_divisions", &AllocatorSettings::roundup_power2_divisions},
                                       {"allowed", &AllocatorSettings::allowed},
                                       {"capacity", &AllocatorSettings::capacity}};
struct PeakMember {
  const char* key;
  int64_t AllocatorPeaks::*member;
};
constexpr PeakMember kPeaks[] = {{"allocated", &AllocatorPeaks::allocated},
                                 {"active", &AllocatorPeaks::active},
                                 {"reserved", &AllocatorPeaks::reserved},
                                 {"requested", &AllocatorPeaks::requested}};
struct AllocatorText {
  const char* key;
  std::string AllocatorRecording::*member;
};
constexpr AllocatorText kAllocatorTexts[] = {{"source", &AllocatorRecording::source},
                                             {"title", &AllocatorRecording::title},
                                             {"device", &AllocatorRecording::device},
                                             {"precision", &AllocatorRecording::precision},
                                             {"optimizer", &AllocatorRecording::optimizer}};

base::Json settings_json(const AllocatorSettings& settings) {
  base::Json json = base::Json::object();
  json["expandable_segments"] = settings.expandable_segments;
  for (const auto& [key, member] : kSettings) json[key] = settings.*member;
  json["garbage_collection_threshold"] = settings.garbage_collection_threshold;
  return json;
}

AllocatorSettings settings_from(const base::Json& json) {
  AllocatorSettings settings;
  std::vector<std::string> known = {"expandable_segments", "garbage_collection_threshold"};
  for (const auto& [key, member] : kSettings) {
    settings.*member = header_count(json, key, kMaxStorageBytes);
    known.emplace_back(key);
  }
  check_header_keys(json, known);
  settings.expandable_segments = json.at("expandable_segments").as_bool();
  const base::Json& threshold = json.at("garbage_collection_threshold");
  settings.garbage_collection_threshold = threshold.as_double();
  if (!(settings.garbage_collection_threshold >= 0 && settings.garbage_collection_threshold <= 1)) {
    throw base::Error(base::Blame::user, text(threshold.where(), ": the threshold is not within 0 .. 1"),
                      "write a share of the allowed memory");
  }
  return settings;
}

bool has_address(Kind kind) {
  return kind == Kind::alloc || kind == Kind::preset_segment || kind == Kind::preset_block ||
         (kind >= Kind::segment_alloc && kind <= Kind::segment_unmap);
}

bool makes_block(Kind kind) {
  return kind == Kind::alloc || kind == Kind::preset_block;
}

bool names_block(Kind kind) {
  return kind == Kind::free || kind == Kind::free_requested || kind == Kind::free_completed;
}

int64_t lowest_address(const std::vector<AllocatorEvent>& events) {
  int64_t lowest = kMaxAddress;
  for (const auto& event : events) {
    if (has_address(event.kind)) lowest = std::min(lowest, event.address);
  }
  return lowest == kMaxAddress ? 0 : lowest;
}

std::string letter_of(const AllocatorEvent& event) {
  switch (event.kind) {
    case Kind::alloc:
      return "a";
    case Kind::free:
      return "f";
    case Kind::free_requested:
      return "q";
    case Kind::free_completed:
      return "c";
    case Kind::segment_alloc:
      return "S";
    case Kind::segment_free:
      return "F";
    case Kind::segment_map:
      return "M";
    case Kind::segment_unmap:
      return "U";
    case Kind::out_of_memory:
      return "o";
    case Kind::peaks_reset:
      return "r";
    case Kind::preset_segment:
      return event.small ? "p" : "P";
    case Kind::preset_block:
      return "b";
  }
  return "";
}

void append_hex(std::string& out, int64_t value) {
  char digits[17];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
}

// The tokens of all events, on lines of a comfortable width.
class TokenWriter {
 public:
  explicit TokenWriter(int64_t base) : base_(base) {}

  void add(const AllocatorEvent& event) {
    if (event.stream != stream_ && event.kind != Kind::peaks_reset) {
      stream_ = event.stream;
      std::string token = "~";
      append_hex(token, stream_);
      put(token);
    }
    std::string token = letter_of(event);
    if (names_block(event.kind)) {
      append_hex(token, num_blocks_ - event.block);  // 1: the youngest
    } else if (event.kind != Kind::peaks_reset) {
      append_hex(token, event.size);
    }
    if (has_address(event.kind)) {
      token += '@';
      append_hex(token, (event.address - base_) / kUnit);
    }
    num_blocks_ += makes_block(event.kind);
    put(token);
  }
  void finish(std::string& out) {
    out += lines_;
    if (!line_.empty()) out += line_ + "\n";
  }

 private:
  void put(const std::string& token) {
    if (line_.size() + token.size() >= kLineWidth) {
      lines_ += line_ + "\n";
      line_.clear();
    }
    if (!line_.empty()) line_ += ' ';
    line_ += token;
  }

  int64_t base_;
  int64_t stream_ = 0;
  int64_t num_blocks_ = 0;
  std::string line_;
  std::string lines_;
};

class AllocatorReader {
 public:
  AllocatorReader(const OpenedRecording& opened, const std::string& source) : scanner_(opened.body, source) {
    read_header(opened.header, static_cast<int64_t>(opened.body.size()));
    while (scanner_.next_line()) {
      while (!scanner_.at_line_end()) read_token(scanner_.word());
    }
    if (const auto found = static_cast<int64_t>(recording_.events.size()); found != num_events_) {
      scanner_.fail(text(found, " events where the header says ", num_events_), "record again");
    }
  }
  AllocatorRecording take() { return std::move(recording_); }

 private:
  void read_header(const base::Json& header, int64_t body_bytes) {
    std::vector<std::string> known = {"batch", "steps", "settings", "peaks", "base", "events"};
    for (const auto& [key, member] : kAllocatorTexts) {
      recording_.*member = header.at(key).as_string();
      known.emplace_back(key);
    }
    check_header_keys(header, known);
    recording_.batch = header_count(header, "batch");
    recording_.steps = header_count(header, "steps");
    recording_.settings = settings_from(header.at("settings"));
    for (const auto& [key, member] : kPeaks) {
      recording_.peaks.*member = header_count(header.at("peaks"), key, kMaxStorageBytes);
    }
    base_ = header_count(header, "base", kMaxAddress);
    num_events_ = header_count(header, "events", body_bytes);  // "r" and a blank: no event is shorter
    recording_.events.reserve(std::min(num_events_, body_bytes / 2));
  }

  void read_token(std::string_view token) {
    if (token.empty()) scanner_.fail("two blanks in a row", "record again");
    const char letter = token[0];
    token.remove_prefix(1);
    if (letter == '~') {
      stream_ = scanner_.integer_in(token, 16, "stream", 0, 1 << 20);
      return;
    }
    AllocatorEvent event;
    event.kind = kind_of(letter);
    event.small = letter == 'p';
    event.stream = event.kind == Kind::peaks_reset ? 0 : stream_;
    if (has_address(event.kind)) {
      const size_t at = token.find('@');
      if (at == std::string_view::npos) scanner_.fail("an address is missing", "see docs/formats/recording.md");
      const int64_t units = scanner_.integer_in(token.substr(at + 1), 16, "address", 0, kMaxAddress / kUnit);
      event.address = base_ + units * kUnit;
      token = token.substr(0, at);
    }
    if (names_block(event.kind)) {
      event.block = num_blocks_ - scanner_.integer_in(token, 16, "block", 1, num_blocks_);
      check_life(event);
    } else if (event.kind == Kind::peaks_reset) {
      if (!token.empty()) scanner_.fail("'r' stands alone", "see docs/formats/recording.md");
    } else {
      event.size = scanner_.integer_in(token, 16, "size", 1, kMaxStorageBytes);
    }
    if (makes_block(event.kind)) {
      event.block = num_blocks_++;
      life_.push_back(Life::allocated);
    }
    recording_.events.push_back(event);
  }

  Kind kind_of(char letter) const {
    switch (letter) {
      case 'a':
        return Kind::alloc;
      case 'f':
        return Kind::free;
      case 'q':
        return Kind::free_requested;
      case 'c':
        return Kind::free_completed;
      case 'S':
        return Kind::segment_alloc;
      case 'F':
        return Kind::segment_free;
      case 'M':
        return Kind::segment_map;
      case 'U':
        return Kind::segment_unmap;
      case 'o':
        return Kind::out_of_memory;
      case 'r':
        return Kind::peaks_reset;
      case 'p':
      case 'P':
        return Kind::preset_segment;
      case 'b':
        return Kind::preset_block;
      default:
        scanner_.fail(text("unknown event '", letter, "'"), "see docs/formats/recording.md");
    }
  }

  void check_life(const AllocatorEvent& event) {
    Life& life = life_[event.block];
    const Life wanted = event.kind == Kind::free_completed ? Life::requested : Life::allocated;
    if (life != wanted) {
      scanner_.fail(
          text("block ", event.block, " is freed and was not ", wanted == Life::allocated ? "in use" : "asked back"),
          "record again");
    }
    life = event.kind == Kind::free_requested ? Life::requested : Life::freed;
  }

  enum class Life : uint8_t { allocated, requested, freed };
  AllocatorRecording recording_;
  RecordingScanner scanner_;
  std::vector<Life> life_;
  int64_t base_ = 0;
  int64_t num_events_ = 0;
  int64_t num_blocks_ = 0;
  int64_t stream_ = 0;
};

}  // namespace

int64_t AllocatorHistory::number_of_stream(int64_t handle) {
  return streams_.try_emplace(handle, static_cast<int64_t>(streams_.size())).first->second;
}

void AllocatorHistory::add(AllocatorEventKind kind, int64_t address, int64_t size, int64_t stream) {
  AllocatorEvent event;
  event.kind = kind;
  event.stream = kind == Kind::peaks_reset ? 0 : number_of_stream(stream);
  if (names_block(kind)) {
    const auto found = block_at_.find(address);
    if (found == block_at_.end()) {
      throw base::Error(base::Blame::user, text("the history frees a block at ", address, " that it never allocated"),
                        "start the history before the first allocation");
    }
    event.block = found->second;
    const bool second_half = kind == Kind::free_completed && !events_.empty() &&
                             events_.back().kind == Kind::free_requested && events_.back().block == event.block;
    if (kind != Kind::free_requested) block_at_.erase(found);
    if (second_half) {
      events_.back().kind = Kind::free;
      return;
    }
  } else if (kind != Kind::peaks_reset) {
    event.size = size;
  }
  if (has_address(kind)) event.address = address;
  if (makes_block(kind)) {
    event.block = num_blocks_++;
    block_at_[address] = event.block;
  }
  events_.push_back(event);
}

std::string print_allocator_recording(const AllocatorRecording& recording) {
  const int64_t base = lowest_address(recording.events);
  base::Json header = base::Json::object();
  for (const auto& [key, member] : kAllocatorTexts) header[key] = recording.*member;
  header["batch"] = recording.batch;
  header["steps"] = recording.steps;
  header["settings"] = settings_json(recording.settings);
  header["peaks"] = base::Json::object();
  for (const auto& [key, member] : kPeaks) header["peaks"][key] = recording.peaks.*member;
  header["base"] = base;
  header["events"] = recording.events.size();
  std::string out = print_header("allocator", header);
  TokenWriter tokens(base);
  for (const auto& event : recording.events) tokens.add(event);
  tokens.finish(out);
  return seal_recording(std::move(out));
}

AllocatorRecording parse_allocator_recording(std::string_view content, const std::string& source) {
  return with_fix([&] { return AllocatorReader(open_recording(content, source, "allocator"), source).take(); });
}

void write_allocator_recording(const base::Path& path, const AllocatorRecording& recording) {
  base::write_file(path, print_allocator_recording(recording));
}

AllocatorRecording read_allocator_recording(const base::Path& path) {
  return parse_allocator_recording(base::read_file(path, kMaxRecordingBytes), path.string());
}

std::string kind_of_recording(const base::Path& path) {
  return with_fix([&] { return kind_in_header(base::read_file(path, kMaxRecordingBytes), path.string()); });
}

}  // namespace lockstep::forecast
