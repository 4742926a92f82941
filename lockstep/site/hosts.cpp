// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/hosts.h"

#include <algorithm>
#include <charconv>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::site {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr int64_t kMostHosts = 100'000;  // more is a typing error, and would fill the memory

[[noreturn]] void refuse(std::string_view list) {
  throw Error(Blame::user, text("'", list, "' is no list of hosts"),
              "Slurm writes them as node[1-3,7]: see `scontrol show hostnames`");
}

int64_t number(std::string_view digits, std::string_view list) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 0) refuse(list);
  return value;
}

// "1-3" -> 1 2 3, "08-11" -> 08 09 10 11.
std::vector<std::string> expand_range(std::string_view range, std::string_view list) {
  const size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
  const int64_t from = number(first, list);
  const int64_t to = number(last, list);
  if (to < from || to - from > kMostHosts) refuse(list);
  std::vector<std::string> all;
  for (int64_t i = from; i <= to; ++i) {
    std::string digits = text(i);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    all.push_back(std::move(digits));
  }
  return all;
}

// The names of one word: every bracket multiplies what stands before it.
std::vector<std::string> expand_word(std::string_view word, std::string_view list) {
  std::vector<std::string> names{""};
  while (!word.empty()) {
    const size_t open = word.find('[');
    for (auto& name : names) name += word.substr(0, open);
    if (open == std::string_view::npos) break;
    const size_t close = word.find(']', open);
    if (close == std::string_view::npos) refuse(list);
    std::vector<std::string> longer;
    for (const auto& name : names) {
      for (const auto& range : base::split(word.substr(open + 1, close - open - 1), ',')) {
        for (const auto& digits : expand_range(range, list)) longer.push_back(name + digits);
      }
    }
    if (static_cast<int64_t>(longer.size()) > kMostHosts) refuse(list);
    names = std::move(longer);
    word.remove_prefix(close + 1);
  }
  return names;
}

std::vector<std::string> each_once(std::vector<std::string> hosts) {
  std::vector<std::string> kept;
  for (auto& host : hosts) {
    if (!host.empty() && std::find(kept.begin(), kept.end(), host) == kept.end()) kept.push_back(std::move(host));
  }
  return kept;
}

}  // namespace

std::vector<std::string> expand_host_list(std::string_view list) {
  std::vector<std::string> all;
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char letter = i < list.size() ? list[i] : ',';
    depth += letter == '[' ? 1 : letter == ']' ? -1 : 0;
    if (depth < 0 || depth > 1) refuse(list);
    if (letter != ',' || depth > 0) continue;
    for (auto& name : expand_word(list.substr(begin, i - begin), list)) all.push_back(std::move(name));
    begin = i + 1;
  }
  if (depth != 0) refuse(list);
  return each_once(std::move(all));
}

std::vector<std::string> allocated_hosts(const Scheduler& scheduler) {
  if (!scheduler.in_allocation() || scheduler.node_list.empty()) return {};
  if (scheduler.name == SchedulerName::slurm) return expand_host_list(scheduler.node_list);
  std::vector<std::string> lines;
  for (const auto& line : base::split(base::read_file(scheduler.node_list), '\n')) {
    lines.emplace_back(base::trim(line));
  }
  return each_once(std::move(lines));
}

std::vector<Share> share_ranks(int64_t ranks, const std::vector<std::string>& hosts) {
  base::ensure(ranks > 0 && !hosts.empty(), "ranks are shared over hosts");
  const auto count = static_cast<int64_t>(hosts.size());
  std::vector<Share> shares;
  for (int64_t i = 0; i < std::min(ranks, count); ++i) {
    shares.push_back({hosts[static_cast<size_t>(i)], ranks / count + (i < ranks % count ? 1 : 0)});
  }
  return shares;
}

}  // namespace lockstep::site
