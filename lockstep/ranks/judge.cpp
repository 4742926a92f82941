// SPDX-License-Identifier: Apache-2.0
#include "lockstep/ranks/judge.h"

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
using run::Beat;
using run::RankEnd;
using Kind = Fault::Kind;

std::string number_text(double seconds) {
  return base::fixed(seconds, seconds < 10 ? 1 : 0);
}

Fault fault_of(Kind kind, const Beat& beat, double seconds) {
  return {.kind = kind,
          .rank = beat.rank,
          .host = beat.who.host,
          .step = beat.step,
          .call = beat.call,
          .calls = beat.calls,
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

std::string name_of_rank(const Beat& beat) {
  return text("rank ", beat.rank, " on ", beat.who.host);
}

std::string doing(const Beat& beat) {
  return text("after step ", beat.step, ", ", name_of(beat.phase),
              beat.call.empty() ? "" : text(", in ", beat.call, " number ", beat.calls));
}

// "; ranks 0, 1 and 3 wait in all-reduce number 412": what the others are doing tells where the culprit is missing.
std::string who_waits(const std::vector<Sighting>& ranks, Fault& fault) {
  std::vector<std::string> waiting;
  for (const auto& [beat, silent, still] : ranks) {
    if (!beat || beat->end || beat->rank == fault.rank || beat->call.empty()) continue;
    waiting.push_back(text(beat->rank));
    fault.call = beat->call;
    fault.calls = beat->calls;
  }
  if (waiting.empty()) return "";
  return text("; rank", waiting.size() > 1 ? "s " : " ", base::join(waiting, ", "),
              waiting.size() > 1 ? " wait" : " waits", " in ", fault.call, " number ", fault.calls);
}

// An error that the rank has told by itself; 85 and 0 are no errors. Nobody restarts what a person must mend.
bool own_affair(const Beat& beat) {
  const RankEnd& end = *beat.end;
  if (end.asked) return true;
  if (end.signal != 0) return false;
  if (end.code == static_cast<int>(base::Blame::machine)) return !beat.call_failed;
  for (const int code : {base::kExitDone, base::kExitRequeue, 2, 4, 128 + SIGINT}) {
    if (end.code == code) return true;
  }
  return false;
}

std::optional<Fault> judge_ended(const std::vector<Sighting>& ranks) {
  const Sighting* found = nullptr;
  for (const auto& sighting : ranks) {
    if (!sighting.beat || !sighting.beat->end || own_affair(*sighting.beat)) continue;
    // A signal is the cause; those that lost a peer are its effect.
    if (!found || (found->beat->end->signal == 0 && sighting.beat->end->signal != 0)) found = &sighting;
  }
  if (!found) return std::nullopt;
  const Beat& beat = *found->beat;
  const RankEnd& end = *beat.end;
  Fault fault = fault_of(end.out_of_memory && end.signal == SIGKILL ? Kind::out_of_memory : Kind::dead, beat, 0);
  const std::string how = fault.kind == Kind::out_of_memory ? "was killed by the kernel for want of memory"
                          : end.signal != 0                 ? text("was killed by ", signal_text(end.signal))
                          : beat.call_failed                ? text("lost a peer and ended with code ", end.code)
                                                            : text("ended with code ", end.code);
  fault.what = text(name_of_rank(beat), " ", how, ", ", doing(beat), "; it held ",
                    base::format_bytes(static_cast<double>(end.peak_bytes)), " at most", who_waits(ranks, fault));
  return fault;
}

std::optional<Fault> judge_silent(const std::vector<Sighting>& ranks, const Patience& patience) {
  for (size_t i = 0; i < ranks.size(); ++i) {
    const auto& [beat, silent, still] = ranks[i];
    if (!beat && silent > patience.start()) {
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
    if (!beat || beat->end || silent <= patience.silence(*beat)) continue;
    Fault fault = fault_of(beat->stopped ? Kind::stopped : Kind::silent, *beat, silent);
    fault.what =
        text(name_of_rank(*beat),
             beat->stopped ? " was stopped by a signal" : " is silent: its process or its host is gone or frozen", ", ",
             doing(*beat), ", ", number_text(silent), " s without a beat", who_waits(ranks, fault));
    return fault;
  }
  return std::nullopt;
}

// Those that the others wait for: the ones that started the fewest collectives, and of these the ones in none.
std::vector<const Sighting*> hindmost(const std::vector<Sighting>& ranks) {
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& rank : ranks) {
    if (rank.beat && !rank.beat->end) fewest = std::min(fewest, rank.beat->calls);
  }
  std::vector<const Sighting*> last, busy;
  for (const auto& rank : ranks) {
    if (!rank.beat || rank.beat->end || rank.beat->calls != fewest) continue;
    last.push_back(&rank);
    if (rank.beat->call.empty()) busy.push_back(&rank);
  }
  return busy.empty() ? last : busy;
}

// Whether a rank that is in no collective, by its own words, may yet be waiting for another one.
bool may_wait(const Beat& beat) {
  return beat.call.empty() && (!beat.calls_whole || beat.calls == 0);
}

// The hindmost that stopped with `first`, a step's length apart at most (of which Patience allows four): by what they
// tell, any of them may be waiting for any other.
std::vector<std::string> stopped_together(const std::vector<const Sighting*>& last, const Sighting& first) {
  std::vector<std::string> names;
  for (const Sighting* rank : last) {
    if (may_wait(*rank->beat) && rank->still > first.still / 2) names.push_back(text(rank->beat->rank));
  }
  return names;
}

std::optional<Fault> judge_still(const std::vector<Sighting>& ranks, const Patience& patience) {
  if (std::any_of(ranks.begin(), ranks.end(), [](const Sighting& rank) { return !rank.beat; })) return std::nullopt;
  const auto last = hindmost(ranks);
  if (last.empty()) return std::nullopt;
  const bool all_wait = !last[0]->beat->call.empty();
  const Sighting* found = nullptr;
  for (const Sighting* rank : last) {
    const bool too_long =
        rank->still > (all_wait ? std::max(patience.hang, patience.phase(*rank->beat)) : patience.phase(*rank->beat));
    if (all_wait && !too_long) return std::nullopt;  // one of them may yet come
    if (too_long && (!found || rank->still > found->still)) found = rank;
  }
  if (!found) return std::nullopt;
  const Beat& beat = *found->beat;
  Fault fault = fault_of(all_wait ? Kind::network : Kind::hung, beat, found->still);
  if (all_wait && ranks.size() > 1 && last.size() == ranks.size()) {
    fault.rank = -1;
    fault.host.clear();
    fault.what = text("the network between the hosts does not answer: all ranks wait in ", beat.call, " number ",
                      beat.calls, " for ", number_text(found->still), " s, after step ", beat.step);
    return fault;
  }
  const auto together = stopped_together(last, *found);
  if (may_wait(beat) && together.size() > 1) {
    fault.rank = -1;
    fault.host.clear();
    fault.what =
        text("ranks ", base::join(together, ", "), " stand still ", doing(beat), ", ", number_text(found->still),
             " s without getting on; which of them the others wait for is not known", who_waits(ranks, fault));
    return fault;
  }
  fault.what = text(name_of_rank(beat), " hangs ", doing(beat), ", ", number_text(found->still),
                    " s without getting on", who_waits(ranks, fault));
  return fault;
}

}  // namespace

double Patience::silence(const Beat& beat) const {
  return beat.phase == run::Phase::ending ? 2 * hang : std::clamp(hang / 5, 3.0, 60.0);
}

double Patience::phase(const Beat& beat) const {
  if (beat.longest <= 0) return (beat.phase == run::Phase::computing || beat.phase == run::Phase::data ? 6 : 12) * hang;
  return std::max(hang, 4 * beat.longest);
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

std::optional<Fault> judge(const std::vector<Sighting>& ranks, const Patience& patience) {
  if (auto fault = judge_ended(ranks)) return fault;
  if (auto fault = judge_silent(ranks, patience)) return fault;
  return judge_still(ranks, patience);
}

}  // namespace lockstep::ranks
