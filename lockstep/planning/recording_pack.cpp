// SPDX-License-Identifier: Apache-2.0
#include "lockstep/planning/recording_pack.h"

#include <cmath>
#include <cstdint>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::planning {
namespace {

using base::Blame;
using base::Error;
using forecast::Event;
using forecast::EventKind;
using forecast::Operator;
using forecast::Recording;

using Words = std::vector<uint64_t>;

constexpr std::string_view kFormat = "lockstep recordings 1\n";
constexpr size_t kDigest = 32;  // of the checksum's 64 digits
constexpr uint64_t kMostWords = uint64_t{1} << 28;

[[noreturn]] void refuse(const char* what) {
  throw Error(Blame::user, base::text("recordings of the zoo: ", what),
              "make them again with this version of the program: make planner-page");
}

uint64_t zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
int64_t unzigzag(uint64_t word) {
  return static_cast<int64_t>(word >> 1) ^ -static_cast<int64_t>(word & 1);
}

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 128; value >>= 7) out += static_cast<char>(value | 128);
  out += static_cast<char>(value);
}

class Bytes {
 public:
  explicit Bytes(std::string_view rest) : rest_(rest) {}
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) refuse("they end too early");
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
    refuse("a number is too long");
  }
  std::string text() {
    const uint64_t size = varint();
    if (size > rest_.size()) refuse("they end too early");
    std::string found(rest_.substr(0, static_cast<size_t>(size)));
    rest_.remove_prefix(static_cast<size_t>(size));
    return found;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// Words that stood there before are a distance and a length (LZ77, the whole text is the window).
class Repeats {
 public:
  static std::string fold(const Words& words) {
    std::string out;
    append_varint(out, words.size());
    std::unordered_map<uint64_t, size_t> seen;  // hash of kShortest words -> where they stood last
    size_t literal = 0;                         // where the words begin that have no reference yet
    size_t at = 0;
    const auto write = [&](size_t length, size_t distance) {
      append_varint(out, at - literal);
      for (size_t i = literal; i < at; ++i) append_varint(out, words[i]);
      append_varint(out, length);
      if (length > 0) append_varint(out, distance);
    };
    while (at < words.size()) {
      const size_t length = at + kShortest <= words.size() ? match(words, seen, at) : 0;
      if (length == 0) {
        note(words, seen, at++);
        continue;
      }
      const size_t from = seen.at(hash(words, at));
      write(length, at - from);
      for (const size_t end = at + length; at < end;) note(words, seen, at++);
      literal = at;
    }
    write(0, 0);
    return out;
  }

  static Words unfold(Bytes& in) {
    const uint64_t size = in.varint();
    if (size > kMostWords) refuse("there are too many of them");
    Words words;
    words.reserve(static_cast<size_t>(size));
    while (words.size() <= size) {
      for (uint64_t literals = in.varint(); literals > 0; --literals) {
        if (words.size() >= size) refuse("more words than were counted");
        words.push_back(in.varint());
      }
      const uint64_t length = in.varint();
      if (length == 0) break;
      const uint64_t distance = in.varint();
      if (distance == 0 || distance > words.size() || length > size - words.size()) refuse("a reference leads nowhere");
      for (uint64_t i = 0; i < length; ++i) words.push_back(words[words.size() - static_cast<size_t>(distance)]);
    }
    if (words.size() != size) refuse("fewer words than were counted");
    return words;
  }

 private:
  static constexpr size_t kShortest = 6;  // a reference takes four bytes or so

  static uint64_t hash(const Words& words, size_t at) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kShortest; ++i) sum = (sum ^ words[at + i]) * 0x9E3779B97F4A7C15 + (sum >> 29);
    return sum;
  }
  static void note(const Words& words, std::unordered_map<uint64_t, size_t>& seen, size_t at) {
    if (at + kShortest <= words.size()) seen[hash(words, at)] = at;
  }
  static size_t match(const Words& words, const std::unordered_map<uint64_t, size_t>& seen, size_t at) {
    const auto found = seen.find(hash(words, at));
    if (found == seen.end()) return 0;
    size_t length = 0;
    while (at + length < words.size() && words[found->second + length] == words[at + length]) ++length;
    return length < kShortest ? 0 : length;
  }
};

// The members of a recording and of its parts, in one order for both ways: `Way` has text(), shape() for what happens
// and number() for how much of it, each of which takes a member or gives it.
template <class Way, class Integer>
void pass_shape(Way& way, Integer& value) {
  auto word = static_cast<int64_t>(value);
  way.shape(word);
  value = static_cast<Integer>(word);
}

template <class Way>
void pass(Way& way, double& value) {
  // FLOPs and bytes are whole numbers; others keep their bits.
  constexpr double kExact = 9e15;
  int64_t whole = value >= 0 && value < kExact && value == std::floor(value) ? static_cast<int64_t>(value) : -1;
  way.number(whole);
  if (whole >= 0) {
    value = static_cast<double>(whole);
    return;
  }
  auto bits = __builtin_bit_cast(int64_t, value);
  way.number(bits);
  value = __builtin_bit_cast(double, bits);
}

template <class Way>
void pass(Way& way, Operator& call) {
  way.text(call.name);
  pass_shape(way, call.kind);
  pass_shape(way, call.type);
  pass_shape(way, call.phase);
  pass_shape(way, call.launches);
  pass_shape(way, call.block);
  way.resize(call.shape);
  pass(way, call.flops);
  pass(way, call.bytes);
  for (int64_t& size : call.shape) way.number(size);
}

// Ids as distances: then one step looks like the next.
struct LastIds {
  int64_t storage = -1;
  int64_t collective = -1;
  int64_t step = -1;

  int64_t origin(EventKind kind) const {
    if (kind == EventKind::run) return 0;
    if (kind == EventKind::birth || kind == EventKind::death) return storage;
    return kind == EventKind::collective || kind == EventKind::wait ? collective : step;
  }
  void note(const Event& event) {
    if (event.kind == EventKind::birth) storage = event.id;
    if (event.kind == EventKind::collective) collective = event.id;
    if (event.kind == EventKind::step_begin) step = event.id;
  }
};

template <class Way>
void pass(Way& way, Event& event, LastIds& last) {
  auto kind = static_cast<int64_t>(event.kind) + 8 * static_cast<int64_t>(event.memory) +
              128 * static_cast<int64_t>(event.collective) + 1024 * static_cast<int64_t>(event.thread);
  way.shape(kind);
  event.kind = static_cast<EventKind>(kind % 8);
  event.memory = static_cast<forecast::MemoryClass>(kind / 8 % 16);
  event.collective = static_cast<forecast::CollectiveKind>(kind / 128 % 8);
  event.thread = static_cast<int8_t>(kind / 1024);
  int64_t distance = event.id - last.origin(event.kind);
  way.shape(distance);
  event.id = last.origin(event.kind) + distance;
  last.note(event);
  if (event.kind == EventKind::birth || event.kind == EventKind::collective) way.number(event.bytes);
}

template <class Way>
void pass(Way& way, Recording& recording) {
  for (std::string* text :
       {&recording.source, &recording.title, &recording.precision, &recording.optimizer, &recording.attention}) {
    way.text(*text);
  }
  pass_shape(way, recording.layout);
  int64_t captured = recording.captured ? 1 : 0;
  way.shape(captured);
  recording.captured = captured != 0;
  for (int64_t* count : {&recording.accumulation, &recording.ranks, &recording.image_size, &recording.steps})
    way.shape(*count);
  for (auto* names : {&recording.blocks, &recording.estimated}) {
    way.resize(*names);
    for (std::string& name : *names) way.text(name);
  }
  way.number(recording.micro_batch);
  for (int64_t* count : {&recording.parameters, &recording.parameter_bytes, &recording.checkpoint_bytes})
    way.number(*count);
  way.resize(recording.operators);
  for (Operator& call : recording.operators) pass(way, call);
  way.resize(recording.events);
  LastIds last;
  for (Event& event : recording.events) pass(way, event, last);
}

// The numbers of the recording before, in order, and how much larger the batch is.
class Before {
 public:
  enum Mark : uint64_t { same, grown, new_one };

  void begin() {
    before_ = std::move(now_);
    now_.clear();
  }
  // The first number of a recording is its batch.
  Mark mark(int64_t value) const {
    const size_t at = now_.size();
    if (at >= before_.size()) return new_one;
    if (value == before_[at]) return same;
    if (at == 0 || before_.front() == 0) return new_one;
    const auto product = [](int64_t a, int64_t b) { return static_cast<__int128>(a) * b; };
    return product(value, before_.front()) == product(before_[at], now_.front()) ? grown : new_one;
  }
  int64_t value(Mark mark) const {
    const size_t at = now_.size();
    if (at >= before_.size()) refuse("a mark leads nowhere");
    if (mark == same) return before_[at];
    if (at == 0 || before_.front() == 0) refuse("a mark leads nowhere");
    return static_cast<int64_t>(static_cast<__int128>(before_[at]) * now_.front() / before_.front());
  }
  void note(int64_t value) { now_.push_back(value); }

 private:
  std::vector<int64_t> before_;
  std::vector<int64_t> now_;
};

class Packer {
 public:
  void add(const Recording& recording) {
    before_.begin();
    Recording copy = recording;
    pass(*this, copy);
  }

  void text(const std::string& value) {
    const auto [found, is_new] = texts_.try_emplace(value, texts_.size());
    if (is_new) table_.push_back(value);
    shapes_.push_back(found->second);
  }
  void shape(int64_t value) { shapes_.push_back(zigzag(value)); }
  template <class Item>
  void resize(const std::vector<Item>& list) {
    shapes_.push_back(list.size());
  }
  void number(int64_t value) {
    const auto mark = before_.mark(value);
    numbers_.push_back(mark == Before::new_one ? Before::new_one + zigzag(value) : mark);
    before_.note(value);
  }

  std::string take(size_t count) const {
    std::string out(kFormat);
    append_varint(out, count);
    append_varint(out, table_.size());
    for (const std::string& text : table_) {
      append_varint(out, text.size());
      out += text;
    }
    out += Repeats::fold(shapes_);
    out += Repeats::fold(numbers_);
    return out + base::sha256_hex(out).substr(0, kDigest);
  }

 private:
  std::unordered_map<std::string, uint64_t> texts_;
  std::vector<std::string> table_;
  Words shapes_;
  Words numbers_;
  Before before_;
};

class Unpacker {
 public:
  explicit Unpacker(Bytes& in) {
    for (uint64_t count = in.varint(); count > 0; --count) table_.push_back(in.text());
    shapes_ = Repeats::unfold(in);
    numbers_ = Repeats::unfold(in);
  }

  Recording next() {
    before_.begin();
    Recording made;
    pass(*this, made);
    return made;
  }
  bool is_done() const { return at_shape_ == shapes_.size() && at_number_ == numbers_.size(); }

  void text(std::string& value) {
    const uint64_t index = word(shapes_, at_shape_);
    if (index >= table_.size()) refuse("a name is missing");
    value = table_[static_cast<size_t>(index)];
  }
  void shape(int64_t& value) { value = unzigzag(word(shapes_, at_shape_)); }
  template <class Item>
  void resize(std::vector<Item>& list) {
    const uint64_t size = word(shapes_, at_shape_);
    if (size > shapes_.size() + numbers_.size()) refuse("a list is longer than its words");
    list.resize(static_cast<size_t>(size));
  }
  void number(int64_t& value) {
    const uint64_t mark = word(numbers_, at_number_);
    value = mark >= Before::new_one ? unzigzag(mark - Before::new_one) : before_.value(static_cast<Before::Mark>(mark));
    before_.note(value);
  }

 private:
  static uint64_t word(const Words& words, size_t& at) {
    if (at >= words.size()) refuse("they end too early");
    return words[at++];
  }

  std::vector<std::string> table_;
  Words shapes_;
  Words numbers_;
  size_t at_shape_ = 0;
  size_t at_number_ = 0;
  Before before_;
};

}  // namespace

std::string pack_recordings(const std::vector<Recording>& recordings) {
  Packer packer;
  for (const Recording& recording : recordings) packer.add(recording);
  return packer.take(recordings.size());
}

std::vector<Recording> unpack_recordings(std::string_view packed) {
  if (!packed.starts_with(kFormat)) refuse("not in the format that this program reads");
  if (packed.size() < kFormat.size() + kDigest) refuse("they end too early");
  const std::string_view summed = packed.substr(0, packed.size() - kDigest);
  if (base::sha256_hex(summed).substr(0, kDigest) != packed.substr(summed.size())) refuse("their checksum is another");
  Bytes in(summed.substr(kFormat.size()));
  const uint64_t count = in.varint();
  Unpacker unpacker(in);
  std::vector<Recording> recordings;
  for (uint64_t i = 0; i < count; ++i) recordings.push_back(unpacker.next());
  if (!unpacker.is_done() || !in.empty()) refuse("there is more than was counted");
  return recordings;
}

}  // namespace lockstep::planning
