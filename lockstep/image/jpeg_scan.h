// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::image {

struct HuffmanCode {                       // as a DHT marker gives it
  std::array<uint8_t, 17> num_codes = {};  // of each length; [0] is not used
  std::array<uint8_t, 256> symbols = {};

  bool operator==(const HuffmanCode&) const = default;
};

// The entropy-coded data of a baseline JPEG's only scan, as coefficients: what a decoder spends most of its time on.
// One look gives one or two whole coefficients (code, sign and value bits together), and what nobody needs is not
// decoded: restart intervals are jumped over by their markers, other blocks are read and not stored. Knows no library.
// Keeps its tables from one image to the next; one per thread. Allocates in start() only.
class ScanReader {
 public:
  using Block = int16_t[64];  // in natural order, as stored in the file: not yet multiplied by the quantisation

  struct Position {  // one block of an MCU
    int component = 0;
    int dc_code = 0;  // 0 .. 3
    int ac_code = 0;
    bool ac_needed = true;
  };
  struct Layout {
    std::array<Position, 10> positions = {};
    int num_positions = 0;
    int64_t restart_interval = 0;  // in MCUs; 0: none
  };

  // Before start(); each number is of a table of its kind. The same code again costs nothing.
  void set_dc_code(int number, const HuffmanCode& code);
  void set_ac_code(int number, const HuffmanCode& code);

  // `data` begins behind the SOS header and outlives the reading.
  void start(std::span<const std::byte> data, const Layout& layout);

  // The blocks of MCU `index`, which must be zero before. REQUIRES: ascending indices; those left out are passed over.
  // False when the data are damaged or end too early.
  bool read(int64_t index, Block* const* blocks);

 private:
  static constexpr int kLookBits = 11;  // more would hold more symbols, in a table that leaves the nearest cache

  struct Step {  // a symbol: `value` stands `run` coefficients further on
    int16_t value = 0;
    uint8_t run = 0;
    uint8_t bits = 0;  // of code and value; 0: they do not fit, but if the code does, here are its symbol and length
  };
  struct Pair {  // two symbols in one look, or one twice
    Step first;
    int16_t second_value = 0;
    uint8_t second_advance = 0;  // 0: the same again
    uint8_t bits = 0;            // of both
  };
  struct Table {
    HuffmanCode code;
    std::array<Step, 1 << kLookBits> steps;
    std::array<Pair, 1 << kLookBits> pairs;  // AC only
    std::array<int32_t, 17> limit;           // of each length: the first 16 bits that are no code of it
    std::array<int32_t, 17> first_symbol;    // to be added to a code of this length
    bool is_ac = false;
    bool is_set = false;
  };
  struct Bits;

  static void build(const HuffmanCode& code, bool is_ac, Table& table);
  static void build_pairs(Table& table);
  static Step symbol_step(unsigned symbol, int code_bits, uint64_t buffer, bool is_ac);
  static Step long_step(const Table& table, uint64_t buffer);
  static bool read_dc(const Table& table, Bits& bits, int& value);
  template <bool stores>
  static bool read_ac(const Table& table, Bits& bits, int16_t* block);
  bool read_mcu(Block* const* blocks);
  void load_interval();
  bool go_to_interval(int64_t number);

  std::array<Table, 4> dc_{};
  std::array<Table, 4> ac_{};
  Layout layout_;
  const uint8_t* raw_ = nullptr;  // behind the interval that is loaded
  const uint8_t* end_ = nullptr;
  std::vector<uint8_t> interval_;  // without stuffed bytes, zeros behind
  int64_t interval_bits_ = 0;
  int64_t interval_number_ = 0;
  int64_t at_ = 0;  // the MCU that the bits are at
  const uint8_t* next_ = nullptr;
  uint64_t buffer_ = 0;
  int count_ = 0;
  std::array<int, 4> dc_value_{};
};

}  // namespace lockstep::image
