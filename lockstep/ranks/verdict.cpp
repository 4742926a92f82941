// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/verdict.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::ranks {
namespace {

using base::text;
using run::Heartbeat;
using run::RankEnd;
using Kind = Fault::Kind;

std::string number_text(double seconds) {
  return base::fixed(seconds, seconds < 10 ? 1 : 0);
}

Fault fault_of(Kind kind, const Heartbeat& heartbeat, double seconds) {
  return {.kind = kind,
          .rank = heartbeat.rank,
          .host = heartbeat.who.host,
          .step = heartbeat.step,
          .call = heartbeat.call,
          .calls = heartbeat.calls,
          .seconds = seconds,
          .what = ""};
}

std::string signal_text(int signal) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},
      {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},   {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"}};
  for (const auto& [number, name] : kNames) {
    if (number == signal) return name;
  }
  return text("signal ", signal);
}

std::string name_of_rank(const Heartbeat& heartbeat) {
  return text("rank ", heartbeat.rank, " on ", heartbeat.who.host);
}

std::string doing(const Heartbeat& heartbeat) {
  return text("after step ", heartbeat.step, ", ", name_of(heartbeat.phase),
              heartbeat.call.empty() ? "" : text(", in ", heartbeat.call, " number ", heartbeat.calls));
}

// "; ranks 0, 1 and 3 wait in all-reduce number 412": what the others are doing tells where the culprit is missing.
std::string who_waits(const std::vector<Observation>& ranks, Fault& fault) {
  std::vector<std::string> waiting;
  for (const auto& [heartbeat, silent, still] : ranks) {
    if (!heartbeat || heartbeat->end || heartbeat->rank == fault.rank || heartbeat->call.empty()) continue;
    waiting.push_back(text(heartbeat->rank));
    fault.call = heartbeat->call;
    fault.calls = heartbeat->calls;
  }
  if (waiting.empty()) return "";
  return text("; rank", waiting.size() > 1 ? "s " : " ", base::join(waiting, ", "),
              waiting.size() > 1 ? " wait" : " waits", " in ", fault.call, " number ", fault.calls);
}

// An error that the rank has told by itself; 85 and 0 are no errors. Nobody restarts what a person must fix.
bool own_affair(const Heartbeat& heartbeat) {
  const RankEnd& end = *heartbeat.end;
  if (end.asked) return true;
  if (end.signal != 0) return false;
  if (end.code == static_cast<int>(base::Blame::machine)) return !heartbeat.call_failed;
  for (const int code : {base::kExitDone, base::kExitRequeue, 2, 4, 128 + SIGINT}) {
    if (end.code == code) return true;
  }
  return false;
}

std::optional<Fault> find_ended(const std::vector<Observation>& ranks) {
  const Observation* found = nullptr;
  for (const auto& observation : ranks) {
    if (!observation.heartbeat || !observation.heartbeat->end || own_affair(*observation.heartbeat)) continue;
    // A signal is the cause; those that lost a peer are its effect.
    if (!found || (found->heartbeat->end->signal == 0 && observation.heartbeat->end->signal != 0)) found = &observation;
  }
  if (!found) return std::nullopt;
  const Heartbeat& heartbeat = *found->heartbeat;
  const RankEnd& end = *heartbeat.end;
  Fault fault = fault_of(end.out_of_memory && end.signal == SIGKILL ? Kind::out_of_memory : Kind::dead, heartbeat, 0);
  const std::string how = fault.kind == Kind::out_of_memory ? "was killed by the kernel for want of memory"
                          : end.signal != 0                 ? text("was killed by ", signal_text(end.signal))
                          : heartbeat.call_failed           ? text("lost a peer and ended with code ", end.code)
                                                            : text("ended with code ", end.code);
  fault.what = text(name_of_rank(heartbeat), " ", how, ", ", doing(heartbeat), "; it held ",
                    base::format_bytes(static_cast<double>(end.peak_bytes)), " at most", who_waits(ranks, fault));
  return fault;
}

std::optional<Fault> find_silent(const std::vector<Observation>& ranks, const Patience& patience) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto& [heartbeat, silent, still] = ranks[i];
    if (!heartbeat && silent > patience.start()) {
      Fault fault{.kind = Kind::not_started,
                  .rank = static_cast<int64_t>(i),
                  .host = "",
                  .step = 0,
                  .call = "",
                  .calls = 0,
                  .seconds = silent,
                  .what = ""};
      fault.what = text("rank ", i, " has not started within ", number_text(silent), " s");
      return fault;
    }
    if (!heartbeat || heartbeat->end || silent <= patience.silence(*heartbeat)) continue;
    Fault fault = fault_of(heartbeat->stopped ? Kind::stopped : Kind::silent, *heartbeat, silent);
    fault.what =
        text(name_of_rank(*heartbeat),
             heartbeat->stopped ? " was stopped by a signal" : " is silent: its process or its host is gone or frozen",
             ", ", doing(*heartbeat), ", ", number_text(silent), " s without a heartbeat", who_waits(ranks, fault));
    return fault;
  }
  return std::nullopt;
}

// Those that the others wait for: the ones that started the fewest collectives, and of these the ones in none.
std::vector<const Observation*> hindmost(const std::vector<Observation>& ranks) {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& rank : ranks) {
    if (rank.heartbeat && !rank.heartbeat->end) fewest = std::min(fewest, rank.heartbeat->calls);
  }
  std::vector<const Observation*> last, busy;
  for (const auto& rank : ranks) {
    if (!rank.heartbeat || rank.heartbeat->end || rank.heartbeat->calls != fewest) continue;
    last.push_back(&rank);
    if (rank.heartbeat->call.empty()) busy.push_back(&rank);
  }
  return busy.empty() ? last : busy;
}

// Whether a rank that is in no collective, by its own words, may yet be waiting for another one.
bool may_wait(const Heartbeat& heartbeat) {
  return heartbeat.call.empty() && (!heartbeat.calls_whole || heartbeat.calls == 0);
}

// The hindmost that stopped with `first`, a step's length apart at most (of which Patience allows four): by what they
// tell, any of them may be waiting for any other.
std::vector<std::string> stopped_together(const std::vector<const Observation*>& last, const Observation& first) {
  std::vector<std::string> names;
  for (const Observation* rank : last) {
    if (may_wait(*rank->heartbeat) && rank->still > first.still / 2) names.push_back(text(rank->heartbeat->rank));
  }
  return names;
}

std::optional<Fault> find_still(const std::vector<Observation>& ranks, const Patience& patience) {
  if (std::any_of(ranks.begin(), ranks.end(), [](const Observation& rank) { return !rank.heartbeat; }))
    return std::nullopt;
  const auto last = hindmost(ranks);
  if (last.empty()) return std::nullopt;
  const bool all_wait = !last[0]->heartbeat->call.empty();
  const Observation* found = nullptr;
  for (const Observation* rank : last) {
    const bool too_long = rank->still > (all_wait ? std::max(patience.hang, patience.phase(*rank->heartbeat))
                                                  : patience.phase(*rank->heartbeat));
    if (all_wait && !too_long) return std::nullopt;  // one of them may yet come
    if (too_long && (!found || rank->still > found->still)) found = rank;
  }
  if (!found) return std::nullopt;
  const Heartbeat& heartbeat = *found->heartbeat;
  Fault fault = fault_of(all_wait ? Kind::network : Kind::hung, heartbeat, found->still);
  if (all_wait && ranks.size() > 1 && last.size() == ranks.size()) {
    fault.rank = -1;
    fault.host.clear();
    fault.what = text("the network between the hosts does not answer: all ranks wait in ", heartbeat.call, " number ",
                      heartbeat.calls, " for ", number_text(found->still), " s, after step ", heartbeat.step);
    return fault;
  }
  const auto together = stopped_together(last, *found);
  if (may_wait(heartbeat) && together.size() > 1) {
    fault.rank = -1;
    fault.host.clear();
    fault.what =
        text("ranks ", base::join(together, ", "), " stand still ", doing(heartbeat), ", ", number_text(found->still),
             " s without getting on; which of them the others wait for is not known", who_waits(ranks, fault));
    return fault;
  }
  fault.what = text(name_of_rank(heartbeat), " hangs ", doing(heartbeat), ", ", number_text(found->still),
                    " s without getting on", who_waits(ranks, fault));
  return fault;
}

}  // namespace

double Patience::silence(const Heartbeat& heartbeat) const {
  return heartbeat.phase == run::Phase::ending ? 2 * hang : std::clamp(hang / 5, 3.0, 60.0);
}

double Patience::phase(const Heartbeat& heartbeat) const {
  if (heartbeat.longest <= 0)
    return (heartbeat.phase == run::Phase::computing || heartbeat.phase == run::Phase::data ? 6 : 12) * hang;
  return std::max(hang, 4 * heartbeat.longest);
}

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::dead:
      return "dead";
    case Kind::out_of_memory:
      return "out_of_memory";
    case Kind::stopped:
      return "stopped";
    case Kind::silent:
      return "silent";
    case Kind::hung:
      return "hung";
    case Kind::network:
      return "network";
    case Kind::not_started:
      return "not_started";
    case Kind::launcher:
      return "launcher";
  }
  return "";
}

base::Json Fault::to_json() const {
  base::Json json = base::Json::object();
  json["why"] = name_of(kind);
  if (rank >= 0) json["rank"] = rank;
  if (!host.empty()) json["host"] = host;
  json["step"] = step;
  if (!call.empty()) {
    json["call"] = call;
    json["calls"] = calls;
  }
  json["what"] = what;
  return json;
}

std::optional<Fault> find_fault(const std::vector<Observation>& ranks, const Patience& patience) {
  if (auto fault = find_ended(ranks)) return fault;
  if (auto fault = find_silent(ranks, patience)) return fault;
  return find_still(ranks, patience);
}

}  // namespace lockstep::ranks
