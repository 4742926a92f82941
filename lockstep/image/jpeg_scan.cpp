// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/jpeg_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace lockstep::image {
namespace {

constexpr uint32_t kEndRun = 128;     // "coefficients before it" of an end of block: beyond any position
constexpr int32_t kMostDc = 1 << 20;  // real ones have 12 bits
constexpr size_t kZerosBehind = 512;  // a block of damaged data reads at most 64 * 31 bits further

// Zigzag position to natural position. Beyond the last stand the last: there an end of block may put its zero, since
// nothing is there yet; and damaged data their surplus, as in libjpeg.
constexpr auto kNaturalPosition = [] {
  std::array<uint8_t, 256> positions{};
  int x = 0, y = 0;
  for (size_t i = 0; i < 64; ++i) {
    positions[i] = static_cast<uint8_t>(8 * y + x);
    const bool up = (x + y) % 2 == 0;
    if (up ? x == 7 : y == 7) {
      (up ? y : x) += 1;
    } else if (up ? y == 0 : x == 0) {
      (up ? x : y) += 1;
    } else {
      x += up ? 1 : -1;
      y += up ? -1 : 1;
    }
  }
  for (size_t i = 64; i < positions.size(); ++i) positions[i] = 63;
  return positions;
}();
static_assert(kNaturalPosition[1] == 1 && kNaturalPosition[2] == 8 && kNaturalPosition[62] == 62 &&
              kNaturalPosition[63] == 63);

}  // namespace

// The next bits of the interval, left-aligned. fill() gives 56 or more.
struct ScanReader::Bits {
  const uint8_t* next;
  uint64_t buffer;
  int count;

  [[gnu::always_inline]] void fill() {
    uint64_t word;
    std::memcpy(&word, next, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    buffer |= word >> count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  [[gnu::always_inline]] void drop(uint32_t bits) {
    buffer <<= bits;
    count -= static_cast<int>(bits);
  }
};

// What `symbol` stands for when its code is the first `code_bits` of `buffer`; the value's bits follow.
[[gnu::always_inline]] inline ScanReader::Step ScanReader::symbol_step(unsigned symbol, int code_bits, uint64_t buffer,
                                                                       bool is_ac) {
  const unsigned run = is_ac ? symbol >> 4 : 0, size = symbol & 15;
  const auto bits = static_cast<uint8_t>(static_cast<unsigned>(code_bits) + size);
  if (size == 0) return {0, static_cast<uint8_t>(is_ac && run != 15 ? kEndRun : run), bits};
  auto value = static_cast<int32_t>(buffer << code_bits >> (64 - size));
  value -= value < 1 << (size - 1) ? (1 << size) - 1 : 0;
  return {static_cast<int16_t>(value), static_cast<uint8_t>(run), bits};
}

void ScanReader::build(const HuffmanCode& code, bool is_ac, Table& table) {
  table.code = code;
  table.is_ac = is_ac;
  table.is_set = true;
  table.steps.fill({});
  int32_t next_code = 0, next_symbol = 0;
  for (int length = 1; length <= 16; ++length) {
    const auto at = static_cast<size_t>(length);
    table.first_symbol[at] = next_symbol - next_code;
    for (int i = 0; i < code.num_codes[at] && next_symbol < 256; ++i, ++next_code, ++next_symbol) {
      const unsigned symbol = code.symbols[static_cast<size_t>(next_symbol)];
      const int spare = kLookBits - length;
      if (spare < 0 || next_code >= 1 << length) continue;
      const auto first = static_cast<size_t>(next_code) << spare;
      const auto size = static_cast<int>(symbol & 15);
      if (size > spare) {
        const Step known{static_cast<int16_t>(symbol), static_cast<uint8_t>(length), 0};
        std::fill_n(table.steps.begin() + static_cast<ptrdiff_t>(first), size_t{1} << spare, known);
        continue;
      }
      const size_t alike = size_t{1} << (spare - size);  // the bits behind the value do not matter
      for (size_t look = first; look < first + (size_t{1} << spare); look += alike) {
        const Step step = symbol_step(symbol, length, static_cast<uint64_t>(look) << (64 - kLookBits), is_ac);
        std::fill_n(table.steps.begin() + static_cast<ptrdiff_t>(look), alike, step);
      }
    }
    table.limit[at] = next_code << (16 - length);
    next_code <<= 1;
  }
  if (is_ac) build_pairs(table);
}

void ScanReader::build_pairs(Table& table) {
  for (size_t look = 0; look < 1 << kLookBits; ++look) {
    const Step first = table.steps[look];
    const Step second = table.steps[look << first.bits & ((1 << kLookBits) - 1)];
    const bool both =  // the zeros that were shifted in are no data
        first.bits != 0 && first.run != kEndRun && second.bits != 0 && first.bits + second.bits <= kLookBits;
    table.pairs[look] = {first, both ? second.value : first.value, static_cast<uint8_t>(both ? second.run + 1 : 0),
                         static_cast<uint8_t>(first.bits + (both ? second.bits : 0))};
  }
}

// A symbol with a long code or a long value; none if there is no such code.
[[gnu::noinline]] ScanReader::Step ScanReader::long_step(const Table& table, uint64_t buffer) {
  const Step known = table.steps[buffer >> (64 - kLookBits)];
  if (known.run != 0) [[likely]]
    return symbol_step(static_cast<unsigned>(known.value), known.run, buffer, table.is_ac);
  const auto look = static_cast<int32_t>(buffer >> 48);
  for (size_t length = kLookBits + 1; length <= 16; ++length) {
    if (look >= table.limit[length]) continue;
    const int32_t symbol = (look >> (16 - length)) + table.first_symbol[length];
    return symbol_step(table.code.symbols[static_cast<size_t>(symbol) & 0xFF], static_cast<int>(length), buffer,
                       table.is_ac);
  }
  return {};
}

[[gnu::always_inline]] inline bool ScanReader::read_dc(const Table& table, Bits& bits, int& value) {
  bits.fill();
  Step step = table.steps[bits.buffer >> (64 - kLookBits)];
  if (step.bits == 0) [[unlikely]] {
    step = long_step(table, bits.buffer);
    if (step.bits == 0) return false;
  }
  bits.drop(step.bits);
  value += step.value;
  return static_cast<uint32_t>(value + kMostDc) <= 2 * kMostDc;  // hostile sums would overflow
}

template <bool stores>
[[gnu::always_inline]] inline bool ScanReader::read_ac(const Table& table, Bits& bits, int16_t* block) {
  uint32_t position = 1;
  while (true) {
    bits.fill();
    Pair pair = table.pairs[bits.buffer >> (64 - kLookBits)];
    if (pair.bits == 0) [[unlikely]] {
      const Step step = long_step(table, bits.buffer);
      if (step.bits == 0) return false;
      pair = {step, step.value, 0, step.bits};
    }
    for (int look = 0;; ++look) {  // 31 of the 56 bits are needed at first, then 11
      position += pair.first.run;
      if constexpr (stores) block[kNaturalPosition[position]] = pair.first.value;
      if (position >= 63) {  // the second, if any, belongs to the next block
        bits.drop(pair.first.bits);
        return true;
      }
      position += pair.second_advance;
      if constexpr (stores) block[kNaturalPosition[position]] = pair.second_value;
      ++position;
      bits.drop(pair.bits);
      if (position >= 64) return true;
      if (look == 2) break;
      pair = table.pairs[bits.buffer >> (64 - kLookBits)];
      if (pair.bits == 0) [[unlikely]]
        break;
    }
  }
}

void ScanReader::set_dc_code(int number, const HuffmanCode& code) {
  Table& table = dc_[static_cast<size_t>(number)];
  if (!table.is_set || table.code != code) build(code, false, table);
}

void ScanReader::set_ac_code(int number, const HuffmanCode& code) {
  Table& table = ac_[static_cast<size_t>(number)];
  if (!table.is_set || table.code != code) build(code, true, table);
}

void ScanReader::start(std::span<const std::byte> data, const Layout& layout) {
  layout_ = layout;
  raw_ = reinterpret_cast<const uint8_t*>(data.data());
  end_ = raw_ + data.size();
  if (interval_.size() < data.size() + kZerosBehind) interval_.resize(data.size() + kZerosBehind);
  interval_number_ = 0;
  at_ = 0;
  load_interval();
}

// Takes the stuffed zeros out, up to the next marker.
void ScanReader::load_interval() {
  uint8_t* out = interval_.data();
  while (raw_ < end_) {
    const auto* mark = static_cast<const uint8_t*>(std::memchr(raw_, 0xFF, static_cast<size_t>(end_ - raw_)));
    const auto length = static_cast<size_t>((mark ? mark : end_) - raw_);
    std::memcpy(out, raw_, length);
    out += length;
    raw_ += length;
    if (end_ - raw_ < 2) break;
    if (raw_[1] == 0) {
      *out++ = 0xFF;
      raw_ += 2;
    } else if (raw_[1] == 0xFF) {
      ++raw_;  // any number of FF may stand before a marker
    } else {
      break;
    }
  }
  std::memset(out, 0, kZerosBehind);
  interval_bits_ = 8 * (out - interval_.data());
  next_ = interval_.data();
  buffer_ = 0;
  count_ = 0;
  dc_value_ = {};
}

bool ScanReader::go_to_interval(int64_t number) {
  while (interval_number_ < number) {
    while (end_ - raw_ >= 2 && !(raw_[0] == 0xFF && raw_[1] != 0 && raw_[1] != 0xFF)) {
      const auto* mark = static_cast<const uint8_t*>(std::memchr(raw_ + 1, 0xFF, static_cast<size_t>(end_ - raw_ - 1)));
      raw_ = mark ? mark : end_;
    }
    if (end_ - raw_ < 2 || raw_[1] != 0xD0 + interval_number_ % 8) return false;  // not the marker that is due
    raw_ += 2;
    ++interval_number_;
  }
  at_ = number * layout_.restart_interval;
  load_interval();
  return true;
}

bool ScanReader::read_mcu(Block* const* blocks) {
  Bits bits{next_, buffer_, count_};
  bool good = true;
  for (int i = 0; i < layout_.num_positions && good; ++i) {
    const Position& position = layout_.positions[static_cast<size_t>(i)];
    int& dc = dc_value_[static_cast<size_t>(position.component)];
    const Table& ac = ac_[static_cast<size_t>(position.ac_code)];
    good = read_dc(dc_[static_cast<size_t>(position.dc_code)], bits, dc);
    if (!good) break;
    if (blocks) (*blocks[i])[0] = static_cast<int16_t>(dc);
    if (blocks && position.ac_needed) {
      good = read_ac<true>(ac, bits, *blocks[i]);
    } else {
      good = read_ac<false>(ac, bits, nullptr);
    }
    good = good && 8 * (bits.next - interval_.data()) - bits.count <= interval_bits_;
  }
  next_ = bits.next;
  buffer_ = bits.buffer;
  count_ = bits.count;
  ++at_;
  return good;
}

bool ScanReader::read(int64_t index, Block* const* blocks) {
  const int64_t interval = layout_.restart_interval;
  if (interval > 0 && index / interval != interval_number_ && !go_to_interval(index / interval)) return false;
  while (at_ < index) {
    if (!read_mcu(nullptr)) return false;
  }
  return read_mcu(blocks);
}

}  // namespace lockstep::image
