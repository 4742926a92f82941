// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/rank_times.h"

#include <algorithm>
#include <utility>

namespace lockstep::training {
namespace {

using base::Json;

constexpr int64_t kEvery = 100;  // steps
constexpr int64_t kFirst = 10;   // of a session: early enough to see a slow host

double own(const Json& rank) {
  return rank.at("own").as_double();
}

}  // namespace

void RankTimes::step(const Times& times) {
  sums_.seconds += times.seconds;
  sums_.data += times.data;
  sums_.communication += times.communication;
  ++steps_;
}

bool RankTimes::is_due(int64_t step, int64_t resumed_at) {
  return step % kEvery == 0 || step == resumed_at + kFirst;
}

std::optional<Json> RankTimes::gather(comm::Group& group, const std::string& host) {
  const Times mine = std::exchange(sums_, {});
  const int64_t steps = std::exchange(steps_, 0);
  if (group.size() == 1 || steps == 0) return std::nullopt;
  Json words = Json::object();
  words["rank"] = group.rank();
  words["host"] = host;
  words["own"] = mine.own();
  words["data"] = mine.data;
  words["communication"] = mine.communication;
  std::vector<Json> ranks;
  ranks.reserve(static_cast<size_t>(group.size()));
  for (const auto& told : comm::gather_texts(group, words.dump(-1))) ranks.push_back(base::parse_json(told, "a rank"));
  std::stable_sort(ranks.begin(), ranks.end(), [](const Json& a, const Json& b) { return own(a) < own(b); });
  Json fields = Json::object();
  fields["steps"] = steps;
  fields["ranks"] = group.size();
  fields["slowest"] = ranks.back();
  fields["median"] = ranks[(ranks.size() - 1) / 2];
  return fields;
}

}  // namespace lockstep::training
