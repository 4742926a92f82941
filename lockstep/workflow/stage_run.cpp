// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/stage_run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <random>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/file_tail.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/run/journal.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/scheduler.h"
#include "lockstep/spec/workflow_rules.h"
#include "lockstep/tune/study_file.h"
#include "lockstep/version.h"

namespace lockstep::workflow {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr const char* kTokenVariable = "LOCKSTEP_WORKFLOW_ATTEMPT";

std::string new_token() {
  std::random_device random;
  char words[32];
  std::snprintf(words, sizeof words, "%08x%08x", random(), random());
  return words;
}

// With the stage's own folder: a token from the folder of another workflow ends none of its processes.
std::string mark_of(const base::Path& stage, const std::string& token) {
  return text(token, "@", std::filesystem::weakly_canonical(stage).string());
}

void remove_all(const base::Path& path) {
  std::error_code failed;
  std::filesystem::remove_all(path, failed);
  if (failed && failed != std::errc::no_such_file_or_directory) {
    throw Error(Blame::machine, text("cannot remove ", path.string(), ": ", failed.message()),
                "remove it by hand, then start again");
  }
}

void rename_over(const base::Path& from, const base::Path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    base::throw_errno(text("cannot rename ", from.string(), " to ", to.string()));
}

// A link that leads nowhere, too.
bool is_something(const base::Path& path) {
  return std::filesystem::is_symlink(path) || base::is_there(path);
}

base::Path parent_of(const base::Path& path) {
  return path.has_parent_path() ? path.parent_path() : base::Path(".");
}

// All that was written there is on the disk when this returns.
void sync_file_system(const base::Path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // a pipe has no writer
  if (descriptor < 0) base::throw_errno(text("cannot open ", path.string()));
  const int failed = ::syncfs(descriptor);
  const int code = errno;
  ::close(descriptor);
  errno = code;
  if (failed != 0) base::throw_errno(text("the disk did not take ", path.string()));
}

std::string last_line(const base::Path& log) {
  constexpr size_t kTail = 4000;
  std::string tail;
  try {
    tail = base::read_tail(log, kTail);
  } catch (const Error&) {
    return "";  // somebody has put something else in its place
  }
  const auto lines = base::split(base::trim(tail), '\n');
  // A fix belongs to the message above it.
  for (size_t i = lines.size(); i-- > 0;) {
    if (lines[i].find("  fix: ") != 0 && !base::trim(lines[i]).empty() && !lines[i].starts_with("== ")) {
      const std::string line(base::trim(lines[i]));
      const size_t own = line.starts_with("lockstep: ") ? line.find("error: ") : std::string::npos;
      return (own == std::string::npos ? line : line.substr(own + 7)).substr(0, 400);
    }
  }
  return "";
}

// Where the previous output waits until the new one has its name: it is put back when that comes to nothing.
std::string old_name(const std::string& path, const std::string& token) {
  return text(path, ".old-", token.substr(0, 8));
}

// Where an output is made. Programs go by the end of a file's name: that stays.
std::string partial_name(const base::Path& path, const std::string& token) {
  const std::string name = text("partial-", token.substr(0, 8), "-", path.filename().string());
  return path.has_parent_path() ? (path.parent_path() / name).string() : name;
}

// Whether an attempt with this token made it, or would have. Others may be able to write to the folder in which the
// attempt is noted: nothing else that it names is removed.
bool may_be_half_made(const base::Path& path, const std::string& token, const spec::Stage& stage) {
  const std::string name = path.filename().string();
  const std::string mark = token.substr(0, 8);
  if (mark.size() < 8) return false;
  if (name.starts_with(text("partial-", mark, "-"))) return true;
  return std::any_of(stage.outputs.begin(), stage.outputs.end(),
                     [&](const std::string& output) { return path == base::Path(spec::stage_path(output)); });
}

// Undoes an attempt that came to nothing: what it half made goes, the outputs that it put aside are back in their
// places. A kill meanwhile lets the next one do it again: what was put aside is whole until it is renamed.
void take_back(const Attempt& attempt, const spec::Stage& stage) {
  for (const auto& path : attempt.half_made) {
    if (may_be_half_made(path, attempt.token, stage)) remove_all(path);
  }
  if (attempt.token.size() < 8) return;
  for (const auto& output : stage.outputs) {
    const std::string path = spec::stage_path(output);
    const std::string old = old_name(path, attempt.token);
    if (!is_something(old)) continue;
    remove_all(path);
    rename_over(old, path);
    base::fsync_folder(parent_of(path));
  }
}

// What would have been gone on from stays for a person to look at.
void put_aside_for_good(const std::string& path) {
  if (!is_something(path)) return;
  remove_all(path + ".previous");
  rename_over(path, path + ".previous");
}

// Whether the words leave the name of this output to us: with another one they are others.
bool names_output(const spec::Stage& stage, size_t index) {
  auto values = spec::placeholder_values(stage);
  const auto as_it_is = spec::fill_placeholders(stage.words(), values);
  values.outputs[index] += "?";
  return !stage.copy.empty() || spec::fill_placeholders(stage.words(), values) != as_it_is;
}

}  // namespace

int64_t end_left_behind(const base::Path& stage, const std::string& token) {
  const std::string mark = text(kTokenVariable, "=", mark_of(stage, token));
  int64_t ended = 0;
  for (int round = 0; round < 50; ++round) {
    int64_t found = 0;
    for (const auto& entry : base::list_folder("/proc")) {
      const std::string name = entry.filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos || name == text(::getpid())) continue;
      std::string environment;
      try {
        environment = base::read_file(entry / "environ");
      } catch (const Error&) {
        continue;  // somebody else's, or gone
      }
      if (environment.empty() || (environment + '\0').find(mark + '\0') == std::string::npos) continue;
      ++found;
      if (::kill(static_cast<pid_t>(std::stol(name)), SIGKILL) == 0) ++ended;
    }
    if (found == 0) return ended;
    ::usleep(20000);
  }
  throw Error(Blame::machine, "processes of an earlier attempt of this stage do not end", "look for them: ps -ef");
}

StageRun::StageRun(const spec::Stage& stage, const StatePaths& paths, const Freshness& freshness,
                   const StageShare& share, const std::string& program)
    : stage_(stage),
      paths_(paths),
      freshness_(freshness),
      share_(share),
      program_(program),
      held_(paths.stage(stage.name)) {
  if (!freshness.missing.empty()) {
    throw Error(Blame::user,
                text("stage '", stage.name, "': input ", base::join(freshness.missing, ", "), " is missing"),
                "the stage that should write it does not, or the path is misspelt");
  }
  const auto words = make_room();
  try {
    start(words);
  } catch (const Error& error) {
    trouble_ = error.what();
    fail();
    throw;
  }
}

std::vector<std::string> StageRun::make_room() {
  const auto before = read_attempt(paths_, stage_.name);
  if (before) {
    if (before->host == site::host_name()) end_left_behind(paths_.stage(stage_.name), before->token);
    take_back(*before, stage_);
  }
  const std::string key = freshness_.basis.key();
  const bool continues = stage_.goes_on() && before && before->key == key;
  attempt_.key = key;
  attempt_.token = new_token();
  attempt_.host = site::host_name();
  attempt_.started = base::unix_seconds();
  attempt_.began = continues ? before->began : attempt_.started;
  attempt_.seconds = continues ? before->seconds : 0;
  attempt_.number = before && before->key == key ? before->number + 1 : 1;
  const bool starts_over = stage_.goes_on() && !continues && (before || freshness_.record);
  for (const auto& path : starts_over ? spec::state_paths(stage_) : std::vector<std::string>{}) {
    put_aside_for_good(path);
  }
  spec::PlaceholderValues values = spec::placeholder_values(stage_);
  for (auto& [name, value] : values.numbers) {
    if (name == "cores" && !share_.cores.empty()) value = text(share_.cores.size());
  }
  for (size_t i = 0; i < stage_.outputs.size(); ++i) {
    const std::string path = spec::stage_path(stage_.outputs[i]);
    base::make_synced_folders(parent_of(path));
    if (stage_.goes_on()) {
      if (starts_over) put_aside_for_good(path);
      continue;
    }
    attempt_.half_made.push_back(partial_name(path, attempt_.token));
    if (names_output(stage_, i)) {
      values.outputs[i] = partial_name(path, attempt_.token);
      made_.emplace_back(values.outputs[i], path);
    } else if (is_something(path)) {
      aside_.push_back(path);
    } else {
      attempt_.half_made.push_back(path);
    }
  }
  if (stage_.copy.empty()) {
    auto words = spec::fill_placeholders(stage_.words(), values);
    if (stage_.command.empty()) words.insert(words.begin(), {program_, stage_.kind()});
    if (share_.here && (!stage_.prep.empty() || !stage_.train.empty())) words.emplace_back("--here");
    return words;
  }
  std::vector<std::string> words{"cp", "-a", "--"};
  words.insert(words.end(), stage_.copy.begin(), stage_.copy.end());
  words.push_back(values.outputs.front());
  if (stage_.copy.size() > 1) base::make_folders(values.outputs.front());
  return words;
}

void StageRun::start(const std::vector<std::string>& words) {
  write_attempt(paths_, stage_.name, attempt_);  // before anything is put aside: its token finds that again
  for (const auto& path : aside_) rename_over(path, old_name(path, attempt_.token));
  Json event = Json::object();
  event["stage"] = stage_.name;
  event["attempt"] = attempt_.number;
  event["why"] = base::join(freshness_.reasons, "; ");
  note("begin", event);
  base::FileWriter(paths_.log(stage_.name), base::FileWriter::Mode::append)
      .write(text("== attempt ", attempt_.number, ": ", base::shell_words(words), "\n"));
  tune::ChildOptions options;
  options.environment = {{kTokenVariable, mark_of(paths_.stage(stage_.name), attempt_.token)},
                         {"LOCKSTEP_STAGE", stage_.name}};
  options.environment.emplace_back("CUDA_VISIBLE_DEVICES", base::join(share_.gpus, ","));  // none: it sees none
  options.cores = share_.cores;
  options.output = paths_.log(stage_.name).string();
  options.most_file = 0;
  started_ = base::steady_seconds();
  child_ = std::make_unique<tune::Child>(words, options);
}

bool StageRun::poll(Digests& digests) {
  if (over_) return true;
  if (!child_->poll()) return false;
  over_ = true;
  code_ = child_->code();
  seconds_ = base::steady_seconds() - started_;
  if (code_ != 0) {
    trouble_ = code_ == base::kExitRequeue ? "stopped in time, to go on later"
               : code_ > 128               ? text("ended by signal ", code_ - 128)
                                           : text("exit code ", code_);
    const std::string words = last_line(paths_.log(stage_.name));
    if (!words.empty() && code_ != base::kExitRequeue) trouble_ += text(": ", words);
    fail();
    return true;
  }
  try {
    complete(digests);
  } catch (const Error& error) {
    trouble_ = error.what();
    code_ = error.exit_code();
    fail();
  }
  return true;
}

void StageRun::move_outputs() {
  for (const auto& [made, path] : made_) {
    sync_file_system(made);
    // One that was renamed over would be lost when the next output is not taken.
    if (is_something(path)) {
      rename_over(path, old_name(path, attempt_.token));
      aside_.push_back(path);
    } else {
      attempt_.half_made.push_back(path);
    }
    rename_over(made, path);
    base::fsync_folder(parent_of(path));
  }
}

// By a name that says so first: what a kill leaves of it is not put back.
void StageRun::remove_put_aside() {
  for (const auto& path : aside_) {
    const std::string partial = partial_name(path, attempt_.token);
    rename_over(old_name(path, attempt_.token), partial);
    remove_all(partial);
  }
}

void StageRun::complete(Digests& digests) {
  for (const auto& [made, path] : made_) {
    if (!base::is_there(made)) {
      throw Error(Blame::user, text("it ended well and did not write ", path, " (", made, " in its command)"),
                  "its outputs are what it writes to {output}");
    }
  }
  move_outputs();
  Record record;
  for (const auto& output : stage_.outputs) {
    const std::string path = spec::stage_path(output);
    const std::string digest = digests.of(path);
    if (digest.empty()) throw Error(Blame::user, text("it ended well and did not write ", path), "name what it writes");
    const bool moved = std::any_of(made_.begin(), made_.end(), [&](const auto& one) { return one.second == path; });
    if (!moved) sync_file_system(path);  // what was moved is on the disk
    record.outputs[path] = digest;
  }
  remove_put_aside();
  record.basis = freshness_.basis;
  for (const auto& [path, digest] : freshness_.basis.files) {
    if (digests.of(path) != digest) record.changed.push_back(path);
  }
  // Edited while it ran, a file is a reason to run again. One that changed in the run before this one as well is the
  // stage's own, and no input.
  for (const auto& path : record.changed) {
    if (freshness_.changed_last_time(path)) record.basis.files.erase(path);
  }
  record.began = attempt_.began;
  record.ended = base::unix_seconds();
  record.seconds = attempt_.seconds + seconds_;
  record.attempts = attempt_.number;
  record.host = attempt_.host;
  record.version = LOCKSTEP_VERSION;
  record.job = site::read_scheduler().job_id;
  attempt_.half_made.clear();  // killed behind the record, it has made nothing that must go
  write_attempt(paths_, stage_.name, attempt_);
  write_record(paths_, stage_.name, record);
  std::error_code gone;
  std::filesystem::remove(paths_.attempt(stage_.name), gone);
  Json event = Json::object();
  event["stage"] = stage_.name;
  event["seconds"] = seconds_;
  event["outcome"] = "done";
  note("end", event);
}

// Stages that run as jobs write to it from several nodes, and NFS does not append at the end that another client has
// just made: one after the other, as the workers of a study.
void StageRun::note(std::string_view event, const Json& fields) const {
  const tune::LinkLock lock(paths_.journal(), paths_.stage(stage_.name));
  run::Journal(paths_.journal()).append(event, fields);
}

void StageRun::fail() {
  take_back(attempt_, stage_);
  attempt_.half_made.clear();
  attempt_.seconds += seconds_;
  attempt_.trouble = trouble_;
  write_attempt(paths_, stage_.name, attempt_);
  Json event = Json::object();
  event["stage"] = stage_.name;
  event["seconds"] = seconds_;
  event["outcome"] = "failed";
  event["why"] = trouble_;
  note("end", event);
}

}  // namespace lockstep::workflow
