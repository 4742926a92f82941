// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/heartbeat.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::run {
namespace {

using base::Json;
using base::text;

constexpr size_t kRecordBytes = 1024;
constexpr size_t kChecksumDigits = 8;
constexpr std::array kPhases{Phase::loading,    Phase::data,   Phase::computing,
                             Phase::evaluating, Phase::saving, Phase::ending};

bool flag(const Json& line, std::string_view key) {
  const Json* value = line.find(key);
  return value && value->as_bool();
}

Json to_json(const RankEnd& end) {
  Json json = Json::object();
  json["code"] = end.code;
  json["signal"] = end.signal;
  json["asked"] = end.asked;
  json["out_of_memory"] = end.out_of_memory;
  json["peak_bytes"] = end.peak_bytes;
  return json;
}

RankEnd end_of(const Json& json) {
  return {static_cast<int>(json.int_or("code", 0)), static_cast<int>(json.int_or("signal", 0)), flag(json, "asked"),
          flag(json, "out_of_memory"), json.int_or("peak_bytes", 0)};
}

std::string checksum(std::string_view content) {
  char digits[kChecksumDigits + 1];
  std::snprintf(digits, sizeof digits, "%08x", base::crc32c(content));
  return digits;
}

Heartbeat from_json(const Json& line) {
  Heartbeat heartbeat;
  heartbeat.world = line.at("world").as_string();
  heartbeat.rank = line.at("rank").as_int();
  heartbeat.who = {line.at("host").as_string(), line.string_or("pid_space", ""), line.at("pid").as_int(),
                   line.int_or("pid_start", 0), ""};
  heartbeat.count = line.at("count").as_int();
  heartbeat.moves = line.at("moves").as_int();
  heartbeat.step = line.at("step").as_int();
  const std::string& phase = line.at("phase").as_string();
  for (const Phase known : kPhases) {
    if (phase == name_of(known)) heartbeat.phase = known;
  }
  heartbeat.longest = line.double_or("longest", 0);
  heartbeat.call = line.string_or("call", "");
  heartbeat.calls = line.int_or("calls", 0);
  heartbeat.answered = line.int_or("answered", 0);
  heartbeat.call_failed = flag(line, "call_failed");
  heartbeat.calls_whole = !flag(line, "calls_in_part");
  heartbeat.stopped = flag(line, "stopped");
  if (const Json* end = line.find("end")) heartbeat.end = end_of(*end);
  return heartbeat;
}

}  // namespace

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::loading:
      return "loading";
    case Phase::data:
      return "data";
    case Phase::computing:
      return "computing";
    case Phase::evaluating:
      return "evaluating";
    case Phase::saving:
      return "saving";
    case Phase::ending:
      return "ending";
  }
  return "";
}

base::Path heartbeat_path(const base::Path& run, int64_t rank) {
  return run / "ranks" / text(rank, ".heartbeat");
}

base::Path world_path(const base::Path& run) {
  return run / "ranks" / "world";
}

base::Path stop_path(const base::Path& run) {
  return run / "ranks" / "stop";
}

std::string to_record(const Heartbeat& heartbeat) {
  Json line = Json::object();
  line["world"] = heartbeat.world;
  line["rank"] = heartbeat.rank;
  line["host"] = heartbeat.who.host.substr(0, 200);
  line["pid_space"] = heartbeat.who.pid_space;
  line["pid"] = heartbeat.who.pid;
  line["pid_start"] = heartbeat.who.pid_start;
  line["count"] = heartbeat.count;
  line["moves"] = heartbeat.moves;
  line["step"] = heartbeat.step;
  line["phase"] = name_of(heartbeat.phase);
  line["longest"] = heartbeat.longest;
  if (!heartbeat.call.empty()) line["call"] = heartbeat.call;
  line["calls"] = heartbeat.calls;
  line["answered"] = heartbeat.answered;
  if (heartbeat.call_failed) line["call_failed"] = true;
  if (!heartbeat.calls_whole) line["calls_in_part"] = true;
  if (heartbeat.stopped) line["stopped"] = true;
  if (heartbeat.end) line["end"] = to_json(*heartbeat.end);
  std::string content = line.dump(-1);
  const size_t room = kRecordBytes - kChecksumDigits - 2;  // a blank behind the checksum, a line end
  base::ensure(content.size() <= room, "a heartbeat fits its record");
  content.append(room - content.size(), ' ');
  return text(checksum(content), ' ', content, '\n');
}

std::optional<Heartbeat> parse_record(std::string_view record) {
  if (record.size() != kRecordBytes) return std::nullopt;
  const std::string_view content = record.substr(kChecksumDigits + 1, kRecordBytes - kChecksumDigits - 2);
  if (record.substr(0, kChecksumDigits) != checksum(content)) return std::nullopt;
  try {
    return from_json(base::parse_json(content, "heartbeat"));
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

void write_heartbeat(const base::Path& path, const Heartbeat& heartbeat) {
  const std::string record = to_record(heartbeat);
  // Opened and closed each time: on NFS it is the closing that others see.
  const int file = base::open_plain(path, O_WRONLY | O_CREAT, 0644);
  if (file < 0) base::throw_errno(text("cannot open ", path.string()));
  const ssize_t written = ::pwrite(file, record.data(), record.size(), 0);
  const int failed = ::close(file);
  if (written != static_cast<ssize_t>(record.size()) || failed) base::throw_errno(text("cannot write ", path.string()));
}

std::optional<Heartbeat> read_heartbeat(const base::Path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string record(kRecordBytes, '\0');
  const ssize_t length = ::pread(file, record.data(), record.size(), 0);
  ::close(file);
  if (length < 0) return std::nullopt;
  record.resize(static_cast<size_t>(length));
  return parse_record(record);
}

}  // namespace lockstep::run
