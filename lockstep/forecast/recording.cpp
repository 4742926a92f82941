// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/recording.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/forecast/recording_text.h"
#include "lockstep/spec/choice_value.h"

namespace lockstep::forecast {
namespace {

using base::text;

constexpr std::string_view kClassLetters = "wgovasbix";  // in the order of MemoryClass
constexpr size_t kMaxName = 200;
constexpr int64_t kMaxShape = 16;

struct CountMember {
  const char* key;
  int64_t Recording::*member;
};
constexpr CountMember kCounts[] = {{"micro_batch", &Recording::micro_batch},
                                   {"accumulation", &Recording::accumulation},
                                   {"ranks", &Recording::ranks},
                                   {"image_size", &Recording::image_size},
                                   {"parameters", &Recording::parameters},
                                   {"parameter_bytes", &Recording::parameter_bytes},
                                   {"checkpoint_bytes", &Recording::checkpoint_bytes},
                                   {"steps", &Recording::steps}};
struct TextMember {
  const char* key;
  std::string Recording::*member;
};
constexpr TextMember kTexts[] = {{"source", &Recording::source},
                                 {"title", &Recording::title},
                                 {"precision", &Recording::precision},
                                 {"optimizer", &Recording::optimizer},
                                 {"attention", &Recording::attention}};

std::string header_of(const Recording& recording) {
  base::Json members = base::Json::object();
  for (const auto& [key, member] : kTexts) members[key] = recording.*member;
  for (const auto& [key, member] : kCounts) members[key] = recording.*member;
  members["layout"] = name_of(recording.layout);
  if (recording.captured) members["captured"] = true;
  members["estimated"] = base::Json::array_of(recording.estimated);
  members["blocks"] = base::Json::array_of(recording.blocks);
  members["operators"] = recording.operators.size();
  members["events"] = recording.events.size();
  return print_header("step", members);
}

template <class Number>
void append(std::string& out, Number value) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

template <class... Numbers>
void append_event(std::string& out, char letter, Numbers... numbers) {
  out += letter;
  ((out += ' ', append(out, numbers)), ...);
}

void append_operator(std::string& out, const Operator& op) {
  base::ensure(!op.name.empty() && op.name.find_first_of(" \n") == std::string::npos, "an operator's name is a word");
  out += text("o ", op.name, " ", name_of(op.kind), " ", name_of(op.type), " ", name_of(op.phase), " ");
  append(out, op.flops);
  out += ' ';
  append(out, op.bytes);
  out += text(" ", op.launches, " ", op.block, op.shape.empty() ? "" : " ");
  for (size_t i = 0; i < op.shape.size(); ++i) out += text(i ? "," : "", op.shape[i]);
  out += '\n';
}

void append_event(std::string& out, const Event& event) {
  switch (event.kind) {
    case EventKind::birth:
      append_event(out, 'b', event.id, event.bytes);
      out += ' ';
      out += kClassLetters[static_cast<size_t>(event.memory)];
      break;
    case EventKind::death:
      append_event(out, 'd', event.id);
      break;
    case EventKind::run:
      append_event(out, 'r', event.id);
      break;
    case EventKind::collective:
      append_event(out, 'c', event.id, event.bytes);
      out += ' ';
      out += name_of(event.collective);
      break;
    case EventKind::wait:
      append_event(out, 'w', event.id);
      break;
    case EventKind::step_begin:
      append_event(out, 's', event.id);
      break;
    case EventKind::step_end:
      append_event(out, 'e', event.id);
      break;
  }
  out += '\n';
}

// Reads the body; holds what the rules between events need.
class StepReader {
 public:
  StepReader(const OpenedRecording& opened, const std::string& source) : scanner_(opened.body, source) {
    read_header(opened.header, static_cast<int64_t>(opened.body.size()));
    for (int64_t i = 0; i < num_operators_; ++i) read_operator();
    for (int64_t i = 0; i < num_events_;) i += read_event();
    if (scanner_.next_line()) scanner_.fail("more lines than the header counts", "record again");
    if (in_step_ || num_steps_ != recording_.steps) {
      scanner_.fail(text(num_steps_, " whole steps where the header says ", recording_.steps), "record again");
    }
  }
  Recording take() { return std::move(recording_); }

 private:
  void read_header(const base::Json& header, int64_t body_bytes) {
    std::vector<std::string> known = {"layout", "captured", "estimated", "blocks", "operators", "events"};
    for (const auto& [key, member] : kTexts) {
      recording_.*member = header.at(key).as_string();
      known.emplace_back(key);
    }
    for (const auto& [key, member] : kCounts) {
      recording_.*member = header_count(header, key, kMaxStorageBytes);
      known.emplace_back(key);
    }
    check_header_keys(header, known);
    // Files from before these were written have none of them.
    if (const base::Json* captured = header.find("captured")) recording_.captured = captured->as_bool();
    if (const base::Json* layout = header.find("layout")) recording_.layout = spec::choice_value<Layout>(*layout);
    if (const base::Json* names = header.find("estimated")) {
      for (const auto& name : names->items()) recording_.estimated.push_back(name.as_string());
    }
    for (const auto& block : header.at("blocks").items()) recording_.blocks.push_back(block.as_string());
    // A line has at least three bytes, so a count beyond that is a lie, and nothing is reserved for it.
    num_operators_ = header_count(header, "operators", body_bytes / 3);
    num_events_ = header_count(header, "events", body_bytes / 3);
    recording_.operators.reserve(num_operators_);
    recording_.events.reserve(num_events_);
  }

  void next_line(const char* what) {
    if (!scanner_.next_line()) scanner_.fail(text("the recording ends before its last ", what), "record again");
  }

  void read_operator() {
    next_line("operator");
    if (scanner_.word() != "o") scanner_.fail("an operator line starts with 'o'", "see docs/formats/recording.md");
    Operator op;
    op.name = scanner_.word();
    if (op.name.size() > kMaxName) scanner_.fail("the operator's name is too long", "shorten it");
    op.kind = static_cast<OperatorClass>(scanner_.choice(kinds_, "kind of operator"));
    op.type = static_cast<NumberType>(scanner_.choice(types_, "number type"));
    op.phase = static_cast<Phase>(scanner_.choice(phases_, "phase"));
    op.flops = scanner_.number("number of FLOPs");
    op.bytes = scanner_.number("number of bytes");
    op.launches = scanner_.integer("number of launches", 0, kMaxCount);
    op.block = scanner_.integer("block", -1, static_cast<int64_t>(recording_.blocks.size()) - 1);
    if (!scanner_.at_line_end()) op.shape = read_shape(scanner_.word());
    scanner_.end_line();
    recording_.operators.push_back(std::move(op));
  }

  std::vector<int64_t> read_shape(std::string_view words) {
    std::vector<int64_t> shape;
    for (size_t end = 0; end != std::string_view::npos;) {
      end = words.find(',');
      shape.push_back(scanner_.integer_in(words.substr(0, end), 10, "size", 0, kMaxCount));
      if (end != std::string_view::npos) words.remove_prefix(end + 1);
      if (shape.size() > kMaxShape) scanner_.fail("too many sizes", "give at most 16");
    }
    return shape;
  }

  // How many events the line made: a switch of the thread makes none.
  int64_t read_event() {
    next_line("event");
    const std::string_view letter = scanner_.word();
    if (letter.size() != 1) scanner_.fail(text("unknown event '", letter, "'"), "see docs/formats/recording.md");
    if (letter == "t") {
      thread_ = static_cast<int8_t>(scanner_.integer("thread", 0, 127));
      scanner_.end_line();
      return 0;
    }
    Event event;
    event.thread = thread_;
    event.id = scanner_.integer("number", 0, kMaxCount);
    switch (letter[0]) {
      case 'b':
        read_birth(event);
        break;
      case 'd':
        read_death(event);
        break;
      case 'r':
        read_run(event);
        break;
      case 'c':
        read_collective(event);
        break;
      case 'w':
        read_wait(event);
        break;
      case 's':
        read_step(event, EventKind::step_begin);
        break;
      case 'e':
        read_step(event, EventKind::step_end);
        break;
      default:
        scanner_.fail(text("unknown event '", letter, "'"), "see docs/formats/recording.md");
    }
    scanner_.end_line();
    recording_.events.push_back(event);
    return 1;
  }

  void read_birth(Event& event) {
    event.kind = EventKind::birth;
    event.bytes = scanner_.integer("number of bytes", 0, kMaxStorageBytes);
    const std::string_view letter = scanner_.word();
    const size_t at = letter.size() == 1 ? kClassLetters.find(letter[0]) : std::string_view::npos;
    if (at == std::string_view::npos) {
      scanner_.fail(text("unknown class of memory '", letter, "'"), text("one of ", kClassLetters));
    }
    event.memory = static_cast<MemoryClass>(at);
    if (!alive_.insert(event.id).second) {
      scanner_.fail(text("storage ", event.id, " is born while it is still alive"), "record again");
    }
  }

  void read_death(Event& event) {
    event.kind = EventKind::death;
    if (alive_.erase(event.id) == 0) {
      scanner_.fail(text("storage ", event.id, " dies and was not alive"), "record again");
    }
  }

  void read_run(Event& event) {
    event.kind = EventKind::run;
    if (event.id >= num_operators_) {
      scanner_.fail(text("operator ", event.id, " runs; the recording lists ", num_operators_), "record again");
    }
  }

  void read_collective(Event& event) {
    event.kind = EventKind::collective;
    event.bytes = scanner_.integer("number of bytes", 0, kMaxStorageBytes);
    event.collective = static_cast<CollectiveKind>(scanner_.choice(collectives_, "collective"));
    if (!pending_.insert(event.id).second) {
      scanner_.fail(text("collective ", event.id, " starts before it was waited for"), "record again");
    }
  }

  void read_wait(Event& event) {
    event.kind = EventKind::wait;
    if (pending_.erase(event.id) == 0) {
      scanner_.fail(text("collective ", event.id, " is waited for and was not started"), "record again");
    }
  }

  void read_step(Event& event, EventKind kind) {
    event.kind = kind;
    if (in_step_ == (kind == EventKind::step_begin)) {
      scanner_.fail(in_step_ ? "a step begins inside a step" : "a step ends that did not begin", "record again");
    }
    in_step_ = !in_step_;
    num_steps_ += in_step_ ? 0 : 1;
  }

  Recording recording_;
  RecordingScanner scanner_;
  const std::vector<std::string> kinds_ = choices_of(OperatorClass{});
  const std::vector<std::string> types_ = choices_of(NumberType{});
  const std::vector<std::string> phases_ = choices_of(Phase{});
  const std::vector<std::string> collectives_ = choices_of(CollectiveKind{});
  std::unordered_set<int64_t> alive_;
  std::unordered_set<int64_t> pending_;
  int64_t num_operators_ = 0;
  int64_t num_events_ = 0;
  int64_t num_steps_ = 0;
  int8_t thread_ = 0;
  bool in_step_ = false;
};

}  // namespace

std::string print_recording(const Recording& recording) {
  std::string out = header_of(recording);
  for (const Operator& op : recording.operators) append_operator(out, op);
  int8_t thread = 0;
  for (const Event& event : recording.events) {
    if (event.thread != thread) {
      thread = event.thread;
      append_event(out, 't', static_cast<int>(thread));
      out += '\n';
    }
    append_event(out, event);
  }
  return seal_recording(std::move(out));
}

Recording parse_recording(std::string_view content, const std::string& source) {
  return with_fix([&] { return StepReader(open_recording(content, source, "step"), source).take(); });
}

void write_recording(const base::Path& path, const Recording& recording) {
  base::write_file(path, print_recording(recording));
}

Recording read_recording(const base::Path& path) {
  return parse_recording(base::read_file(path, kMaxRecordingBytes), path.string());
}

}  // namespace lockstep::forecast
