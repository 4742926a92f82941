// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/batch.h"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <ctime>
#include <iterator>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/pbs_answer.h"

namespace lockstep::site {
namespace {

using base::text;
using State = BatchJob::State;

constexpr std::chrono::milliseconds kCommandPatience{20000};  // a busy controller answers late

State slurm_state(std::string_view word) {
  for (const char* waiting : {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT"}) {
    if (word == waiting) return State::waiting;
  }
  for (const char* running : {"RUNNING", "CONFIGURING", "SUSPENDED", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED"}) {
    if (word == running) return State::running;
  }
  return word == "COMPLETING" ? State::ending : State::over;
}

State pbs_state(std::string_view word) {
  if (word == "Q" || word == "H" || word == "W" || word == "T" || word == "M") return State::waiting;
  if (word == "R" || word == "S" || word == "U" || word == "B") return State::running;
  return word == "E" ? State::ending : State::over;  // F, X: history; C: Torque's "completed"
}

std::string after_equals(std::string_view row) {
  const size_t equals = row.find('=');
  return equals == std::string_view::npos ? "" : std::string(base::trim(row.substr(equals + 1)));
}

std::string first_line(const std::string& words) {
  return std::string(base::trim(words.substr(0, words.find('\n'))));
}

// "4242", "4242_7", "4242.server", "4242[7].server": never anything that a command takes for an option. Ids are read
// from files.
bool is_job_id(std::string_view id) {
  return !id.empty() && id.front() >= '0' && id.front() <= '9';
}

// Why there is no exit code.
std::string silence(const std::string& command) {
  return find_on_path(command) ? "it did not answer within 20 s" : text(command, " is not on PATH here");
}

// qstat complains of ids that are over, one line each, and tells of the others. Any other complaint leaves open whether
// a job lives.
bool only_of_jobs_gone(const std::string& complaint) {
  for (const auto& line : base::split(complaint, '\n')) {
    const bool gone =
        line.find("Unknown Job Id") != std::string::npos || line.find("has finished") != std::string::npos;
    if (!gone && !base::trim(line).empty()) return false;
  }
  return !base::trim(complaint).empty();
}

bool has_answered(const Answer& qstat) {
  return qstat.good() || (qstat.code != -1 && only_of_jobs_gone(qstat.err));
}

// PBS gives a job whose shell died of a signal 256 and its number: 266 after `qsig -s USR1`, 271 after SIGTERM.
int signal_of(const std::string& exit_status) {
  constexpr int kSignalled = 256;
  int code = 0;
  const char* last = exit_status.data() + exit_status.size();
  const auto [end, error] = std::from_chars(exit_status.data(), last, code);
  return error == std::errc() && end == last && code > kSignalled && code < kSignalled + NSIG ? code - kSignalled : 0;
}

}  // namespace

std::vector<std::string> submit_words(SchedulerName scheduler, const base::Path& script, const Waits& waits) {
  const bool pbs = scheduler == SchedulerName::pbs;
  std::vector<std::string> words = pbs ? std::vector<std::string>{"qsub"} : std::vector<std::string>{"sbatch"};
  if (!pbs) words.emplace_back("--parsable");
  switch (waits.what) {
    case Waits::For::nobody:
      break;
    case Waits::For::failure_of:
      if (pbs) {
        words.insert(words.end(), {"-W", text("depend=afternotok:", waits.job)});
      } else {
        // After exit 0 it could never run: without the second word it would stay in the queue for good.
        words.insert(words.end(), {text("--dependency=afternotok:", waits.job), "--kill-on-invalid-dep=yes"});
      }
      break;
    case Waits::For::end_of:
      if (pbs) {
        words.insert(words.end(), {"-W", text("depend=afterany:", waits.job)});
      } else {
        words.push_back(text("--dependency=afterany:", waits.job));
      }
      break;
    case Waits::For::success_of:
      if (pbs) {
        words.insert(words.end(), {"-W", text("depend=afterok:", waits.job)});
      } else {
        words.insert(words.end(), {text("--dependency=afterok:", waits.job), "--kill-on-invalid-dep=yes"});
      }
      break;
    case Waits::For::same_name:
      words.emplace_back("--dependency=singleton");
      break;
  }
  words.push_back(script.string());
  return words;
}

std::string parse_job_id(SchedulerName scheduler, std::string_view out) {
  const std::string line = first_line(std::string(base::trim(out)));
  return scheduler == SchedulerName::slurm ? line.substr(0, line.find(';')) : line;
}

Submitted submit_script(SchedulerName scheduler, const base::Path& script, const Waits& waits, const base::Path& from) {
  auto words = submit_words(scheduler, script, waits);
  if (!find_on_path(words[0])) return {"", silence(words[0])};
  const std::string command = words[0];
  words.insert(words.begin(),
               {"/bin/sh", "-c", "cd \"$0\" && exec \"$@\"", (from.empty() ? script.parent_path() : from).string()});
  const Answer answer = ask(words, kCommandPatience);
  const std::string id = answer.good() ? parse_job_id(scheduler, answer.out) : "";
  if (!id.empty()) return {id, ""};
  if (answer.code == -1) return {"", silence(command)};
  const std::string said(base::trim(answer.err.empty() ? answer.out : answer.err));
  return {"", said.empty() ? text(command, " ended with exit code ", answer.code, " and gave no job number") : said};
}

std::vector<BatchJob> parse_squeue(std::string_view answer) {
  std::vector<BatchJob> all;
  for (const auto& line : base::split(answer, '\n')) {
    const auto words = base::split(base::trim(line), '|');
    if (words.size() != 6) continue;
    const auto known = [](const std::string& word) { return word == "N/A" || word == "None" ? "" : word; };
    all.push_back(
        {words[0], slurm_state(words[1]), words[1], known(words[2]), known(words[3]), known(words[4]), words[5]});
  }
  return all;
}

std::vector<BatchJob> parse_qstat(std::string_view answer) {
  std::vector<BatchJob> all;
  for (const auto& entry : parse_pbs(answer)) {
    BatchJob job;
    job.id = entry.name;
    job.said = entry.value("job_state");
    job.state = pbs_state(job.said);
    job.reason = entry.value("comment");
    for (const char* key : {"stime", "start_time", "estimated.start_time"}) {  // PBS; Torque; a job that waits
      if (job.start.empty()) job.start = entry.value(key);
    }
    job.on_nodes = entry.value("exec_host");
    all.push_back(std::move(job));
  }
  return all;
}

std::string pbs_output(const std::string& name, const std::string& id) {
  return text(name, ".o", id.substr(0, id.find('.')));
}

std::optional<std::vector<BatchJob>> find_jobs(SchedulerName scheduler, const std::string& name,
                                               const std::vector<std::string>& ids) {
  if (scheduler == SchedulerName::pbs) {
    std::vector<std::string> words{"qstat", "-f"};
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(words), is_job_id);
    if (words.size() == 2) return std::vector<BatchJob>{};
    const Answer answer = ask(words, kCommandPatience);
    return has_answered(answer) ? std::optional(parse_qstat(answer.out)) : std::nullopt;
  }
  const Answer answer = ask({"squeue", "-h", text("--name=", name), "-o", "%i|%T|%r|%S|%e|%N"}, kCommandPatience);
  if (!answer.good()) return std::nullopt;
  return parse_squeue(answer.out);
}

JobEnd parse_scontrol(std::string_view answer) {
  std::string state, reason, code;
  for (const auto& word : base::split(base::trim(answer), ' ')) {
    if (word.starts_with("JobState=")) state = after_equals(word);
    if (word.starts_with("Reason=")) reason = after_equals(word);
    if (word.starts_with("ExitCode=")) code = after_equals(word);
  }
  if (state.empty()) return {};
  return {.words = text(state, reason.empty() || reason == "None" ? "" : text(", ", reason),
                        code.empty() || code == "0:0" ? "" : text(", exit code ", code)),
          .by_hand = state.starts_with("CANCELLED"),
          .out_of_memory = state == "OUT_OF_MEMORY"};
}

JobEnd parse_pbs_end(std::string_view answer) {
  const auto jobs = parse_pbs(answer);
  if (jobs.empty() || jobs[0].value("job_state").empty()) return {};
  const PbsEntry& job = jobs[0];
  const std::string comment = job.value("comment");
  const std::string code = job.value("Exit_status");
  if (pbs_state(job.value("job_state")) != State::over) {
    return {.words = text(job.value("job_state"), comment.empty() ? "" : text(", ", comment))};
  }
  // One that never ran has neither; the server's substate tells who ended it.
  if (comment.empty() && code.empty()) {
    const bool deleted = job.value("substate") == "91";
    return {.words = deleted
                         ? "deleted before it ran"
                         : "ended by the server before it ran: the job that it waited for was deleted, or is unknown",
            .by_hand = true};
  }
  const bool memory =
      code == "-27" || comment.ends_with("exceeded resource mem") || comment.ends_with("exceeded resource vmem");
  return {.words = text(comment, comment.empty() || code.empty() ? "" : ", ",
                        code.empty() ? "" : text("exit status ", code)),
          .by_hand = false,
          .out_of_memory = memory,
          .signal = signal_of(code)};
}

JobEnd how_ended(SchedulerName scheduler, const std::string& id) {
  if (!is_job_id(id)) return {};
  if (scheduler == SchedulerName::slurm) {
    const Answer answer = ask({"scontrol", "-o", "show", "job", id}, kCommandPatience);
    if (answer.good()) return parse_scontrol(answer.out);
    return {.is_silent = answer.err.find("Invalid job id") == std::string::npos};
  }
  const Answer answer = ask({"qstat", "-x", "-f", id}, kCommandPatience);  // -x: with those that are over
  JobEnd end = parse_pbs_end(answer.out);
  end.is_silent = !has_answered(answer);
  return end;
}

bool cancel_jobs(SchedulerName scheduler, const std::vector<std::string>& ids) {
  std::vector<std::string> words{scheduler == SchedulerName::pbs ? "qdel" : "scancel"};
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(words), is_job_id);
  if (words.size() == 1) return true;
  const Answer answer = ask(words, kCommandPatience);
  const auto says = [&](const char* phrase) { return answer.err.find(phrase) != std::string::npos; };
  return answer.good() || says("Invalid job id") || says("already completing or completed") || says("Unknown Job Id") ||
         says("has finished");
}

bool exclude_hosts(SchedulerName scheduler, const std::string& id, const std::vector<std::string>& hosts) {
  if (scheduler != SchedulerName::slurm) return false;
  const Answer before = ask({"squeue", "-h", "-j", id, "-o", "%x"}, kCommandPatience);
  if (!before.good()) return false;
  std::vector<std::string> all;
  const std::string kept = first_line(before.out);  // the script's own --exclude; the update replaces it
  if (!kept.empty() && kept != "(null)") all.push_back(kept);
  all.insert(all.end(), hosts.begin(), hosts.end());
  return ask({"scontrol", "update", text("JobId=", id), text("ExcNodeList=", base::join(all, ","))}, kCommandPatience)
      .good();
}

Prospect parse_test_only(std::string_view said) {
  constexpr std::string_view kPhrase = " to start at ";
  const size_t found = said.find(kPhrase);
  std::tm parts{};
  if (found == std::string_view::npos ||
      !::strptime(std::string(said.substr(found + kPhrase.size(), 19)).c_str(), "%Y-%m-%dT%H:%M:%S", &parts)) {
    return {std::nullopt, std::string(base::trim(said))};
  }
  parts.tm_isdst = -1;  // local time, as Slurm writes it
  return {static_cast<int64_t>(std::mktime(&parts)), ""};
}

Prospect ask_start(const base::Path& script) {
  const Answer answer = ask({"sbatch", "--test-only", script.string()}, kCommandPatience);
  if (answer.code == -1) return {std::nullopt, silence("sbatch")};
  return parse_test_only(answer.err);
}

}  // namespace lockstep::site
