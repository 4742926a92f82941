// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep::weights {
namespace {

using Kind = PickleValue::Kind;

constexpr size_t kMaxStack = 4'000'000;
constexpr size_t kMaxItems = 8'000'000;  // in all containers together
constexpr size_t kMaxName = 200;         // of a global, in characters
constexpr uint32_t kMark = UINT32_MAX;

class PickleReader {
 public:
  PickleReader(std::span<const std::byte> content, std::span<const std::string_view> allowed, const std::string& source,
               size_t max_values)
      : content_(content), allowed_(allowed), source_(source), max_values_(max_values) {}

  Pickle read() {
    while (true) {
      const auto opcode = static_cast<uint8_t>(take(1)[0]);
      if (opcode == '.') break;
      if (!read_scalar(opcode) && !read_container(opcode) && !read_reference(opcode)) {
        fail(base::text("opcode ", static_cast<int>(opcode), " has no place in a file of tensors"));
      }
      if (stack_.size() > kMaxStack) fail("its stack grows without end");
    }
    pickle_.root = pop();
    if (!stack_.empty()) fail("values are left on its stack");
    pickle_.bytes_read = at_;
    return std::move(pickle_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw base::Error(base::Blame::user, base::text(source_, ": refused: ", what, " (pickle byte ", at_, ")"),
                      "use weights saved as {name: tensor}, best as safetensors");
  }

  std::span<const std::byte> take(uint64_t count) {
    if (count > content_.size() - at_) fail("it is cut short");
    const auto part = content_.subspan(at_, count);
    at_ += count;
    return part;
  }

  template <class Integer>
  Integer number() {
    Integer value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string take_text(uint64_t count) {
    const auto part = take(count);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }

  std::string take_line() {
    const auto rest = content_.subspan(at_, std::min(content_.size() - at_, kMaxName + 1));
    const auto end = std::find(rest.begin(), rest.end(), std::byte{'\n'});
    if (end == rest.end()) fail("a name that never ends");
    std::string line = take_text(static_cast<uint64_t>(end - rest.begin()));
    take(1);
    return line;
  }

  void push(PickleValue value) {
    if (pickle_.values.size() >= max_values_) fail(base::text("it holds more than ", max_values_, " values"));
    stack_.push_back(static_cast<uint32_t>(pickle_.values.size()));
    pickle_.values.push_back(std::move(value));
  }
  void push(Kind kind, int64_t integer = 0) { push(PickleValue{kind, integer, 0, {}, {}}); }
  void push_text(Kind kind, std::string value) { push(PickleValue{kind, 0, 0, std::move(value), {}}); }

  uint32_t pop() {
    if (stack_.empty() || stack_.back() == kMark) fail("its stack is empty");
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }

  PickleValue& top(Kind kind, const char* what) {
    if (stack_.empty() || stack_.back() == kMark || pickle_.values[stack_.back()].kind != kind) {
      fail(base::text(what, " is expected"));
    }
    return pickle_.values[stack_.back()];
  }

  std::vector<uint32_t> pop_last(size_t count) {
    std::vector<uint32_t> items(count);
    for (size_t i = count; i > 0; --i) items[i - 1] = pop();
    count_items(count);
    return items;
  }

  std::vector<uint32_t> pop_to_mark() {
    const auto mark = std::find(stack_.rbegin(), stack_.rend(), kMark);
    if (mark == stack_.rend()) fail("a mark is missing");
    std::vector<uint32_t> items(mark.base(), stack_.end());
    stack_.erase(mark.base() - 1, stack_.end());
    count_items(items.size());
    return items;
  }

  void count_items(size_t count) {
    num_items_ += count;
    if (num_items_ > kMaxItems) fail(base::text("its containers hold more than ", kMaxItems, " values"));
  }

  void push_items(Kind kind, std::vector<uint32_t> items) { push(PickleValue{kind, 0, 0, {}, std::move(items)}); }

  // An integer in `size` bytes, two's complement; those beyond 64 bits are kept as bytes.
  void push_long(uint64_t size) {
    std::string raw = take_text(size);
    if (size > 8) return push_text(Kind::bytes, std::move(raw));
    int64_t value = !raw.empty() && raw.back() < 0 ? -1 : 0;
    std::memcpy(&value, raw.data(), raw.size());
    push(Kind::integer, value);
  }

  void push_real() {  // big-endian
    const auto bits = __builtin_bswap64(number<uint64_t>());
    push(PickleValue{Kind::real, 0, std::bit_cast<double>(bits), {}, {}});
  }

  void push_global(const std::string& module, const std::string& name) {
    const std::string full = module + "." + name;
    if (std::find(allowed_.begin(), allowed_.end(), full) == allowed_.end()) {
      const std::string shown = base::quote_json(full.substr(0, kMaxName));
      fail(base::text("the file asks to run ", shown.substr(1, shown.size() - 2)));
    }
    push_text(Kind::global, full);
  }

  bool read_scalar(uint8_t opcode) {
    switch (opcode) {
      case 0x80:  // PROTO
        if (const auto version = number<uint8_t>(); version < 2 || version > 5) fail("an unknown pickle protocol");
        return true;
      case 0x95:  // FRAME: its length is only a hint for readers of streams
        number<uint64_t>();
        return true;
      case 'N':
        return push(Kind::none), true;
      case 0x88:
        return push(Kind::boolean, 1), true;
      case 0x89:
        return push(Kind::boolean, 0), true;
      case 'J':
        return push(Kind::integer, number<int32_t>()), true;
      case 'K':
        return push(Kind::integer, number<uint8_t>()), true;
      case 'M':
        return push(Kind::integer, number<uint16_t>()), true;
      case 0x8a:
        return push_long(number<uint8_t>()), true;
      case 'G':
        return push_real(), true;
      case 'X':
        return push_text(Kind::string, take_text(number<uint32_t>())), true;
      case 0x8c:
      case 'U':  // Python 2 wrote names as byte strings
        return push_text(Kind::string, take_text(number<uint8_t>())), true;
      default:
        return false;
    }
  }

  bool read_container(uint8_t opcode) {
    switch (opcode) {
      case '(':
        return stack_.push_back(kMark), true;
      case '}':
        return push(Kind::dict), true;
      case ']':
        return push(Kind::list), true;
      case ')':
        return push(Kind::tuple), true;
      case 't':
        return push_items(Kind::tuple, pop_to_mark()), true;
      case 0x85:
      case 0x86:
      case 0x87:
        return push_items(Kind::tuple, pop_last(opcode - 0x84U)), true;
      case 's':
        return append(Kind::dict, "a dictionary", pop_last(2)), true;
      case 'u':
        return append(Kind::dict, "a dictionary", pop_to_mark()), true;
      case 'a':
        return append(Kind::list, "a list", pop_last(1)), true;
      case 'e':
        return append(Kind::list, "a list", pop_to_mark()), true;
      default:
        return false;
    }
  }

  void append(Kind kind, const char* what, const std::vector<uint32_t>& items) {
    if (kind == Kind::dict && items.size() % 2 != 0) fail("a key without a value");
    // collections.OrderedDict() is a call here; its members are kept behind callable and arguments.
    const bool ordered = kind == Kind::dict && !stack_.empty() && stack_.back() != kMark &&
                         pickle_.values[stack_.back()].kind == Kind::call;
    PickleValue& target = ordered ? pickle_.values[stack_.back()] : top(kind, what);
    target.items.insert(target.items.end(), items.begin(), items.end());
  }

  bool read_reference(uint8_t opcode) {
    switch (opcode) {
      case 'q':
        return memoize(number<uint8_t>()), true;
      case 'r':
        return memoize(number<uint32_t>()), true;
      case 0x94:
        return memoize(static_cast<uint32_t>(memo_.size())), true;
      case 'h':
        return recall(number<uint8_t>()), true;
      case 'j':
        return recall(number<uint32_t>()), true;
      case 'c': {
        const std::string module = take_line();
        return push_global(module, take_line()), true;
      }
      case 0x93: {
        const std::string name = top(Kind::string, "a name").text;
        pop();
        const std::string module = top(Kind::string, "a module").text;
        pop();
        return push_global(module, name), true;
      }
      case 'R':
        return reduce(), true;
      case 'Q':
        return push_items(Kind::persistent, pop_last(1)), true;
      case 'b':  // BUILD: attributes such as _metadata of a state dict; nothing that weights need
        pop();
        return top(Kind::call, "an object with attributes"), true;
      default:
        return false;
    }
  }

  void memoize(uint32_t key) {
    if (stack_.empty() || stack_.back() == kMark) fail("its stack is empty");
    memo_[key] = stack_.back();
    if (memo_.size() > max_values_) fail("its memo grows without end");
  }

  void recall(uint32_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail(base::text("it refers to value ", key, ", which does not exist"));
    stack_.push_back(found->second);
  }

  void reduce() {
    top(Kind::tuple, "a tuple of arguments");
    const uint32_t arguments = pop();
    top(Kind::global, "a known name");
    push_items(Kind::call, {pop(), arguments});
  }

  std::span<const std::byte> content_;
  std::span<const std::string_view> allowed_;
  const std::string& source_;
  size_t max_values_;
  Pickle pickle_;
  size_t at_ = 0;
  size_t num_items_ = 0;
  std::vector<uint32_t> stack_;
  std::unordered_map<uint32_t, uint32_t> memo_;
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> content, std::span<const std::string_view> allowed,
                   const std::string& source, size_t max_values) {
  return PickleReader(content, allowed, source, max_values).read();
}

}  // namespace lockstep::weights
