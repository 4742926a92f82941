// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/events.h"

#include <unistd.h>

#include <cstring>
#include <ctime>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"

namespace lockstep::run {
namespace {

// Protobuf wire types.
constexpr int kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

template <class T>
void append_raw(std::string& out, T value) {  // little-endian, as this program's machines are
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, int field, int wire_type) {
  append_varint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire_type));
}

void append_bytes(std::string& out, int field, std::string_view bytes) {
  append_key(out, field, kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}

// message Event { double wall_time = 1; int64 step = 2; oneof { string file_version = 3; Summary summary = 5; } }
std::string event_head(int64_t step) {
  std::string event;
  append_key(event, 1, kFixed64);
  append_raw(event, base::unix_seconds());
  append_key(event, 2, kVarint);
  append_varint(event, static_cast<uint64_t>(step));
  return event;
}

// TensorFlow masks its checksums, because a checksum of data that holds its own checksum is weak.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = base::crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

base::Path new_file(const base::Path& folder) {
  base::make_folders(folder);
  return folder / base::text("events.out.tfevents.", std::time(nullptr), ".", site::host_name(), ".", ::getpid());
}

}  // namespace

EventWriter::EventWriter(const base::Path& folder) : path_(new_file(folder)), file_(path_) {
  std::string event = event_head(0);
  append_bytes(event, 3, "brain.Event:2");
  record(event);
}

// message Summary { repeated Value value = 1; }  message Value { string tag = 1; float simple_value = 2; }
void EventWriter::scalar(std::string_view tag, int64_t step, double value) {
  std::string point;
  append_bytes(point, 1, tag);
  append_key(point, 2, kFixed32);
  append_raw(point, static_cast<float>(value));
  std::string summary;
  append_bytes(summary, 1, point);
  std::string event = event_head(step);
  append_bytes(event, 5, summary);
  record(event);
}

// One write(2) a record, so that TensorBoard sees whole records only.
void EventWriter::record(std::string_view event) {
  std::string framed;
  append_raw(framed, static_cast<uint64_t>(event.size()));
  append_raw(framed, masked_crc(framed));
  framed += event;
  append_raw(framed, masked_crc(event));
  file_.append(framed);
}

}  // namespace lockstep::run
