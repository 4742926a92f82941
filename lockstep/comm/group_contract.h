// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/comm/group.h"

namespace lockstep::comm {

// What every backend owes its callers, as cases that all ranks of a group run together. Tests give each backend of the
// house this one list; `device` is where its tensors live.
struct ContractCase {
  const char* name;
  void (*run)(Group& group, c10::DeviceType device);
};

namespace contract {

// Empty, one, odd, and large enough for several fragments of any transport.
inline const std::vector<int64_t> kSizes = {0, 1, 1023, 100'003};
inline const std::vector<at::ScalarType> kSummed = {at::kFloat, at::kDouble, at::kInt, at::kLong, at::kBFloat16};
inline const std::vector<at::ScalarType> kMoved = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt,
                                                   at::kLong,  at::kChar,   at::kByte, at::kBool};

// Values 0..6 + `start`: their sums over a few ranks are exact in every type, bfloat16 too.
inline at::Tensor pattern(int64_t size, double start, at::ScalarType type, c10::DeviceType device) {
  return at::arange(size, at::TensorOptions(at::kLong).device(device)).remainder(7).add(start).to(type);
}

inline double ranks_sum(const Group& group) {
  return static_cast<double>(group.size() * (group.size() - 1)) / 2;
}

inline void expect_same(const at::Tensor& got, const at::Tensor& expected) {
  EXPECT_TRUE(at::equal(got, expected)) << c10::toString(got.scalar_type()) << " of " << got.numel();
}

inline void sums(Group& group, c10::DeviceType device) {
  for (const auto type : kSummed) {
    for (const int64_t size : kSizes) {
      at::Tensor value = pattern(size, static_cast<double>(group.rank()), type, device);
      group.all_reduce_sum(value);
      const at::Tensor one = pattern(size, 0, at::kDouble, device);
      expect_same(value, (one * group.size() + ranks_sum(group)).to(type));
    }
  }
}

inline void broadcasts(Group& group, c10::DeviceType device) {
  for (const auto type : kMoved) {
    for (const int64_t size : kSizes) {
      const int64_t root = size % group.size();
      at::Tensor value = pattern(size, static_cast<double>(group.rank()), type, device);
      group.broadcast(value, root);
      expect_same(value, pattern(size, static_cast<double>(root), type, device));
    }
  }
}

inline void gathers(Group& group, c10::DeviceType device) {
  for (const auto type : kMoved) {
    for (const int64_t size : kSizes) {
      const at::Tensor mine = pattern(size, static_cast<double>(group.rank()), type, device);
      const auto all = group.all_gather(mine);
      ASSERT_EQ(static_cast<int64_t>(all.size()), group.size());
      at::Tensor flat = at::empty({group.size(), size}, mine.options());
      group.all_gather_into(mine, flat);
      for (int64_t r = 0; r < group.size(); ++r) {
        const at::Tensor expected = pattern(size, static_cast<double>(r), type, device);
        expect_same(all[static_cast<size_t>(r)], expected);
        expect_same(flat[r], expected);
      }
    }
  }
}

inline void scatters(Group& group, c10::DeviceType device) {
  for (const auto type : kSummed) {
    for (const int64_t size : kSizes) {
      at::Tensor parts = at::empty({group.size(), size}, at::TensorOptions(type).device(device));
      for (int64_t r = 0; r < group.size(); ++r) {
        parts[r].copy_(pattern(size, static_cast<double>(group.rank() + r), type, device));
      }
      at::Tensor mine = at::zeros({size}, parts.options());
      group.reduce_scatter_sum(parts, mine);
      const at::Tensor one = pattern(size, static_cast<double>(group.rank()), at::kDouble, device);
      expect_same(mine, (one * group.size() + ranks_sum(group)).to(type));
    }
  }
}

inline void swaps(Group& group, c10::DeviceType device) {
  for (const auto type : kMoved) {
    for (const int64_t size : kSizes) {
      at::Tensor out = at::empty({group.size(), size}, at::TensorOptions(type).device(device));
      at::Tensor in = at::empty_like(out);
      for (int64_t r = 0; r < group.size(); ++r) {
        out[r].copy_(pattern(size, static_cast<double>(3 * group.rank() + r), type, device));
      }
      group.all_to_all(out, in);
      for (int64_t r = 0; r < group.size(); ++r) {
        expect_same(in[r], pattern(size, static_cast<double>(3 * r + group.rank()), type, device));
      }
    }
  }
}

// Rank r sends r + 1 rows to the first, r + 2 to the next, ...
inline void swaps_uneven(Group& group, c10::DeviceType device) {
  std::vector<int64_t> going, coming;
  int64_t rows_out = 0, rows_in = 0;
  for (int64_t r = 0; r < group.size(); ++r) {
    going.push_back(group.rank() + r + 1);
    coming.push_back(r + group.rank() + 1);
    rows_out += going.back();
    rows_in += coming.back();
  }
  const auto options = at::TensorOptions(at::kFloat).device(device);
  at::Tensor out = at::full({rows_out, 5}, static_cast<double>(group.rank()), options);
  at::Tensor in = at::zeros({rows_in, 5}, options);
  group.group()->alltoall_base(in, out, coming, going)->wait();
  int64_t row = 0;
  for (int64_t r = 0; r < group.size(); ++r) {
    expect_same(in.narrow(0, row, coming[static_cast<size_t>(r)]),
                at::full({coming[static_cast<size_t>(r)], 5}, static_cast<double>(r), options));
    row += coming[static_cast<size_t>(r)];
  }
}

// A ring, with two tags that are received in the other order than they were sent.
inline void sends(Group& group, c10::DeviceType device) {
  if (group.size() == 1) return;  // nobody to talk to
  const int64_t next = (group.rank() + 1) % group.size();
  const int64_t last = (group.rank() + group.size() - 1) % group.size();
  for (const int64_t size : kSizes) {
    std::vector<at::Tensor> first{pattern(size, static_cast<double>(group.rank()), at::kFloat, device)};
    std::vector<at::Tensor> second{pattern(size, static_cast<double>(group.rank()) + 100, at::kFloat, device)};
    const auto one = group.group()->send(first, static_cast<int>(next), 1);
    const auto two = group.group()->send(second, static_cast<int>(next), 2);
    at::Tensor got = at::zeros({size}, first[0].options());
    group.receive(got, last, 2);
    expect_same(got, pattern(size, static_cast<double>(last) + 100, at::kFloat, device));
    group.receive(got, last, 1);
    expect_same(got, pattern(size, static_cast<double>(last), at::kFloat, device));
    one->wait();
    two->wait();
  }
}

inline void many_at_once(Group& group, c10::DeviceType device) {
  constexpr int kMany = 40;
  const auto options = at::TensorOptions(at::kFloat).device(device);
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  std::vector<at::Tensor> sums, parts, wholes;
  for (int i = 0; i < kMany; ++i) {
    sums.push_back(at::full({1 + 997 * i}, static_cast<double>(i), options));
    parts.push_back(at::full({i}, static_cast<double>(group.rank()), options));
    wholes.push_back(at::empty({group.size(), i}, options));
    std::vector<at::Tensor> one{sums.back()};
    works.push_back(group.group()->allreduce(one));
    works.push_back(group.group()->_allgather_base(wholes.back(), parts.back()));
  }
  for (auto work = works.rbegin(); work != works.rend(); ++work) (*work)->wait();
  for (int i = 0; i < kMany; ++i) {
    const auto at = static_cast<size_t>(i);
    expect_same(sums[at], at::full({1 + 997 * i}, static_cast<double>(i * group.size()), options));
    for (int64_t r = 0; r < group.size(); ++r) {
      expect_same(wholes[at][r], at::full({i}, static_cast<double>(r), options));
    }
  }
}

// 256 + 1 is no bfloat16: each addition rounds to nearest even, so that 1 added to 256 is lost. Which additions there
// are depends on the order, and that is the backend's; a sum of n ranks is within n - 1 half units of the last place.
inline void rounds_bfloat16(Group& group, c10::DeviceType device) {
  const auto options = at::TensorOptions(at::kBFloat16).device(device);
  at::Tensor value = at::full({64}, group.rank() == 0 ? 256.0 : 1.0, options);
  group.all_reduce_sum(value);
  const double exact = 256.0 + static_cast<double>(group.size() - 1);
  const auto got = value[0].item<double>();
  EXPECT_LE(std::abs(got - exact), static_cast<double>(group.size() - 1));
  if (group.size() == 2) {
    EXPECT_EQ(got, 256.0);
  }
  expect_same(value, at::full({64}, got, options));
}

inline void meets(Group& group, c10::DeviceType /*device*/) {
  for (int i = 0; i < 3; ++i) group.barrier();
  if (group.size() > 1) {
    EXPECT_GT(group.seconds_waited(), 0);
  }
}

}  // namespace contract

inline const std::vector<ContractCase> kGroupContract = {
    {"SumsEveryTypeAndSize", contract::sums},
    {"BroadcastsFromAnyRoot", contract::broadcasts},
    {"GathersInRankOrder", contract::gathers},
    {"ReducesAndScattersByRank", contract::scatters},
    {"SwapsEqualParts", contract::swaps},
    {"SwapsUnevenParts", contract::swaps_uneven},
    {"SendsAndReceivesByTag", contract::sends},
    {"KeepsManyUnderWayAtOnce", contract::many_at_once},
    {"RoundsBfloat16ToNearestEven", contract::rounds_bfloat16},
    {"Meets", contract::meets},
};

}  // namespace lockstep::comm
