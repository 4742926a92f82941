// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::run {
namespace {

using base::Json;
using base::text;

constexpr int64_t kVersion = 1;

// Whether the last write was torn by a kill or a full disk.
bool ends_within_a_line(const base::Path& path) {
  const int file = base::open_plain(path, O_RDONLY);
  if (file < 0) return false;
  char last = '\n';
  const off_t end = ::lseek(file, 0, SEEK_END);
  const bool torn = end > 0 && ::pread(file, &last, 1, end - 1) == 1 && last != '\n';
  ::close(file);
  return torn;
}

bool is_event(const Json& line) {
  if (!line.is_object()) return false;
  const Json* version = line.find("v");
  const Json* event = line.find("event");
  return version && version->is_integer() && version->as_int() == kVersion && event && event->is_string();
}

// Events that tell of a step and are void once that step is done again.
bool belongs_to_a_step(const Json& line) {
  const std::string& event = line.at("event").as_string();
  for (const char* name :
       {"step", "epoch", "evaluate", "save", "nonfinite", "loss_scale_halved", "promise", "bad_sample"}) {
    if (event == name) return true;
  }
  return false;
}

int64_t step_of(const Json& line) {
  const Json* step = line.find("step");
  return step && step->is_integer() ? step->as_int() : 0;
}

bool is_same_evaluation(const Json& a, const Json& b) {
  return a.at("event") == b.at("event") && step_of(a) == step_of(b) &&
         a.string_or("split", "") == b.string_or("split", "");
}

}  // namespace

Journal::Journal(const base::Path& path) : path_(path), file_(path) {}

void Journal::append(std::string_view event, const Json& fields) {
  Json line = Json::object();
  line["v"] = kVersion;
  line["t"] = std::round(base::unix_seconds() * 1000) / 1000;
  line["event"] = Json(event);
  for (const auto& member : fields.members()) line[member.key] = member.value;
  file_.append(text(ends_within_a_line(path_) ? "\n" : "", line.dump(-1), "\n"));
}

std::vector<Json> History::effective() const {
  std::vector<Json> kept;
  for (const auto& line : events) {
    if (line.at("event").as_string() == "start") kept.clear();
    const std::string& event = line.at("event").as_string();
    if (event == "resume" || event == "rewind") {
      const int64_t from = step_of(line);
      std::erase_if(kept, [&](const Json& earlier) { return belongs_to_a_step(earlier) && step_of(earlier) > from; });
    }
    if (event == "evaluate") {
      std::erase_if(kept, [&](const Json& earlier) { return is_same_evaluation(earlier, line); });
    }
    kept.push_back(line);
  }
  return kept;
}

std::vector<Json> History::named(std::string_view event) const {
  std::vector<Json> all = effective();
  std::erase_if(all, [&](const Json& line) { return line.at("event").as_string() != event; });
  return all;
}

std::optional<Json> parse_event(std::string_view line, const std::string& source) {
  try {
    Json event = base::parse_json(line, source, {.comments = false});
    if (is_event(event)) return event;
  } catch (const base::Error&) {
    return std::nullopt;
  }
  return std::nullopt;
}

History read_journal(const base::Path& path) {
  const std::string content = base::read_file(path, uint64_t{1} << 32);
  History history;
  for (const auto& line : base::split(content, '\n')) {
    if (line.empty()) continue;
    if (auto event = parse_event(line, path.string())) {
      history.events.push_back(std::move(*event));
    } else {
      ++history.skipped;  // the lines around it still tell the story
    }
  }
  return history;
}

}  // namespace lockstep::run
