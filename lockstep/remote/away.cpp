// SPDX-License-Identifier: Apache-2.0
#include "lockstep/remote/away.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/chain/chain.h"
#include "lockstep/remote/parcel.h"
#include "lockstep/run/folder.h"

namespace lockstep::remote {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::shell_word;
using base::text;

constexpr std::chrono::seconds kPatience{120};
constexpr std::chrono::seconds kSubmitPatience{900};  // it plans before it submits

base::Path away_file(const base::Path& run) {
  return run / "via.json";
}

bool is_document(const std::string& machine) {
  return machine.ends_with(".json") || machine.find('/') != std::string::npos;
}

// What one call finds out there: where the folder is, which program, which of the files exist.
struct Found {
  std::string folder;
  std::string program;
  std::vector<std::string> there;
};

Found look_there(const SendRequest& request, const std::string& folder, const std::vector<JobFile>& files) {
  const std::string program = request.program.empty() ? "lockstep" : request.program;
  // Lines of our own are marked: a site may print a greeting.
  std::string line = text("cd && mkdir -p -- ", shell_word(folder), " && cd -- ", shell_word(folder),
                          " && echo \"lockstep-folder $(pwd)\"; p=$(command -v ", shell_word(program),
                          ") && echo \"lockstep-program $p\"; ");
  for (size_t i = 0; i < files.size(); ++i) {
    line += text("[ -e ", shell_word(files[i].path), " ] && echo lockstep-there ", i, "; ");
  }
  const site::Answer answer = ask_there(request.login, line + "true", kPatience);
  Found found;
  for (const auto& row : base::split(answer.out, '\n')) {
    if (row.starts_with("lockstep-folder ")) found.folder = row.substr(16);
    if (row.starts_with("lockstep-program ")) found.program = row.substr(17);
    for (size_t i = 0; i < files.size(); ++i) {
      if (row == text("lockstep-there ", i)) found.there.push_back(files[i].path);
    }
  }
  if (!found.folder.starts_with("/")) {
    throw Error(Blame::machine,
                text(request.login.destination, ": cannot make the folder ", folder, ": ", base::trim(answer.err)),
                "--folder names another, from the home folder there");
  }
  if (found.program.empty() || !found.program.starts_with("/")) {
    throw Error(Blame::machine, text(request.login.destination, " has no '", program, "' on the PATH of a command"),
                "install it there, or say where it is: --program /path/to/lockstep");
  }
  return found;
}

std::vector<std::string> submit_command(const SendRequest& request, const std::string& program,
                                        const std::string& run) {
  std::vector<std::string> words{program, "submit", "job.json", "--run", run, "--json", "-", "--on"};
  words.push_back(is_document(request.machine) ? "machine.json" : request.machine);
  words.insert(words.end(), request.options.begin(), request.options.end());
  return words;
}

// via.json, written before the job is submitted: when the connection is lost meanwhile, or this program is killed,
// nobody here would know of a job that stands in the queue there.
class Note {
 public:
  Note(const base::Path& run, const Away& away) : run_(run), file_(away_file(run)), new_(!base::is_there(run)) {
    if (base::is_there(file_)) before_ = base::read_file(file_);
    write_away(run, away);
  }
  // REQUIRES: it was refused there, for certain. Killed behind the scheduler's answer, or with words that cannot be
  // read, it may have been queued.
  void take_back() const {
    if (before_) return base::write_file(file_, *before_);
    std::error_code gone;
    std::filesystem::remove(file_, gone);
    if (new_) std::filesystem::remove(run_, gone);  // an empty folder is no run
  }

 private:
  base::Path run_;
  base::Path file_;
  bool new_;
  std::optional<std::string> before_;
};

// The document that begins with this line: up to the line that closes it.
std::string document_at(const std::vector<std::string>& lines, size_t first) {
  std::string document = lines[first];
  if (document.ends_with('}')) return document;
  for (size_t i = first + 1; i < lines.size(); ++i) {
    document += "\n" + lines[i];
    if (lines[i].starts_with('}')) break;
  }
  return document;
}

// What it says between the lines that a site's start-up files print, which may have braces of their own.
Json json_in(const std::string& said) {
  const auto lines = base::split(said, '\n');
  for (size_t i = lines.size(); i-- > 0;) {
    if (!lines[i].starts_with('{')) continue;
    try {
      return base::parse_json(document_at(lines, i), "the answer of submit there");
    } catch (const Error&) {
      continue;  // a greeting
    }
  }
  throw Error(Blame::machine, "submit there gave no answer that can be read", "log in there and try the command");
}

// The message of the program there, without its first words.
Error error_there(const Login& login, const site::Answer& answer) {
  std::string what;
  std::string fix;
  for (const auto& row : base::split(answer.err, '\n')) {
    if (const size_t at = row.find("error: "); row.starts_with("lockstep: ") && at != std::string::npos) {
      what = row.substr(at + 7);
    }
    if (row.starts_with("  fix: ")) fix = row.substr(7);
  }
  if (what.empty()) what = std::string(base::trim(answer.err.empty() ? answer.out : answer.err));
  const Blame blame = answer.code == 2 ? Blame::user : answer.code == 4 ? Blame::bug : Blame::machine;
  return {blame, text(login.destination, ": ", what), fix};
}

// Of a folder without via.json: what a run leaves in it.
bool holds_a_run(const base::Path& folder) {
  const run::RunPaths paths{folder};
  const base::Path all[] = {paths.job(),
                            paths.plan(),
                            paths.journal(),
                            paths.checkpoints(),
                            paths.lock(),
                            paths.weights(),
                            run::supervisors_folder(folder)};
  return chain::has_chain(folder) ||
         std::any_of(std::begin(all), std::end(all), [](const base::Path& path) { return base::is_there(path); });
}

// Whoever looks at a run elsewhere writes its files over those in the folder here.
void refuse_run_of_this_machine(const base::Path& run) {
  if (read_away(run) || !holds_a_run(run)) return;
  throw Error(Blame::user,
              text(run.string(), " holds a run of this machine: the one from the login node would be written over it"),
              "--run runs/OTHER, or move that folder away first");
}

void refuse_other_run(const base::Path& run, const Away& away) {
  const auto before = read_away(run);
  if (!before || (before->login == away.login && before->run == away.run)) return;
  throw Error(
      Blame::user,
      text(run.string(), " is the run ", there(before->login, before->run), ", not ", there(away.login, away.run)),
      "--run runs/OTHER, or move that folder away first");
}

// How a job there can be found when nobody here knows whether it was queued.
Error with_doubt(const Error& error, const base::Path& run) {
  const std::string ask =
      text("it may stand in the queue there: lockstep submit --status ", base::shell_path(run.string()), " asks");
  return {error.blame(), error.what(), error.fix().empty() ? ask : text(error.fix(), "; ", ask)};
}

}  // namespace

std::optional<Away> read_away(const base::Path& run) {
  if (!base::is_there(away_file(run))) return std::nullopt;
  const Json document = base::read_json(away_file(run));
  Away away;
  // Read as if the user had typed it: whoever put the file there could name an option of ssh.
  const int64_t port = document.int_or("port", 0);
  away.login = parse_login(port > 0 ? text("ssh://", document.at("login").as_string(), ":", port)
                                    : document.at("login").as_string());
  away.folder = document.at("folder").as_string();
  away.run = document.at("run").as_string();
  away.program = document.at("program").as_string();
  for (const std::string& path : {away.folder, away.run, away.program}) {
    if (!path.starts_with("/")) {
      throw Error(Blame::user, text(away_file(run).string(), ": '", path, "' is no absolute path"),
                  "submit the job again with --via");
    }
  }
  return away;
}

void write_away(const base::Path& run, const Away& away) {
  Json document = Json::object();
  document["v"] = 1;
  document["login"] = away.login.destination;
  document["port"] = away.login.port;
  document["folder"] = away.folder;
  document["run"] = away.run;
  document["program"] = away.program;
  base::make_folders(run);
  base::write_json(away_file(run), document);
}

void refuse_if_away(const base::Path& run) {
  const auto away = read_away(run);
  if (!away) return;
  throw Error(Blame::user,
              text(run.string(), " is what was fetched of ", there(away->login, away->run), ", no run of this machine"),
              text("--run runs/OTHER; it goes on there: lockstep submit --status ", base::shell_path(run.string())));
}

Sent send(const SendRequest& request) {
  refuse_run_of_this_machine(request.run);
  const std::string name = request.run.filename().string();
  const std::string folder = request.folder.empty() ? text("lockstep/", name) : request.folder;
  const auto files = files_of(request.job);
  const Found found = look_there(request, folder, files);
  Sent sent;
  sent.copied = choose_parcel(files, found.there, request.most, request.login.destination);
  check_links(sent.copied);
  sent.away = {request.login, found.folder, text(found.folder, "/runs/", name), found.program};
  refuse_other_run(request.run, sent.away);

  const base::TemporaryFolder documents;
  base::write_json(documents.path() / "job.json", spec::changed_json(request.job));
  if (is_document(request.machine))
    base::write_json(documents.path() / "machine.json", base::read_json(request.machine));
  auto words = rsync_words(request.login, {"--relative", "--copy-links"});
  words.push_back(text(documents.path().string(), "/./job.json"));
  if (is_document(request.machine)) words.push_back(text(documents.path().string(), "/./machine.json"));
  for (const auto& path : sent.copied) words.push_back(text("./", path));
  words.push_back(there(request.login, found.folder + "/"));
  if (request.say) {
    std::string all = text("job", is_document(request.machine) ? ", machine" : "");
    for (const auto& path : sent.copied) all += text(", ", parcel_words(path));
    request.say(text("copies ", all, " to ", there(request.login, found.folder)));
  }
  copy(request.login, words);

  const std::string line = text("cd -- ", shell_word(found.folder), " && exec ",
                                base::shell_words(submit_command(request, found.program, sent.away.run)));
  const bool dry = std::count(request.options.begin(), request.options.end(), "--dry-run") > 0;
  std::optional<Note> note;
  if (!dry) note.emplace(request.run, sent.away);
  try {
    const site::Answer answer = ask_there(request.login, line, kSubmitPatience);
    if (note && answer.code == static_cast<int>(Blame::user)) {  // refused there: nothing was queued
      note->take_back();
      note.reset();
    }
    if (!answer.good()) throw error_there(request.login, answer);
    sent.answer = json_in(answer.out);
  } catch (const Error& error) {
    if (note) throw with_doubt(error, request.run);
    throw;
  }
  return sent;
}

site::Answer relay(const Away& away, const std::vector<std::string>& words) {
  std::vector<std::string> command{away.program};
  command.insert(command.end(), words.begin(), words.end());
  site::Answer answer = ask_there(
      away.login, text("cd -- ", shell_word(away.folder), " && exec ", base::shell_words(command)), kPatience);
  if (!answer.good()) throw error_there(away.login, answer);
  return answer;
}

Json relay_json(const Away& away, std::vector<std::string> words) {
  words.insert(words.end(), {"--json", "-"});
  return json_in(relay(away, words).out);
}

// In place, so that who reads the journal from where he was goes on in the same file.
void fetch(const Away& away, const base::Path& run, Fetch how) {
  // What a run folder holds is files and folders: a link from there could lead what is written here anywhere.
  std::vector<std::string> options{"--inplace",
                                   "--no-links",
                                   "--no-devices",
                                   "--no-specials",
                                   "--no-perms",
                                   "--exclude=/via.json",
                                   "--exclude=/checkpoints/",
                                   "--exclude=*.tmp-*"};
  if (how == Fetch::to_look_at) {  // with the lock, by which `watch` knows that it runs
    options.insert(options.end(), {"--exclude=*.safetensors", "--exclude=/events/", "--max-size=64m"});
  } else {
    options.insert(options.end(), {"--exclude=/lock", "--exclude=/ranks/lock"});
  }
  auto words = rsync_words(away.login, options);
  words.push_back(there(away.login, away.run + "/"));
  words.push_back((std::filesystem::absolute(run) / "").string());  // rsync takes a:b for a host
  copy(away.login, words);
}

void fetch_if_away(const base::Path& run) {
  if (const auto away = read_away(run)) fetch(*away, run, Fetch::to_look_at);
}

}  // namespace lockstep::remote
