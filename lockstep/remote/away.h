// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/remote/login.h"
#include "lockstep/spec/job.h"

namespace lockstep::remote {

// A run that goes on elsewhere, as RUN/via.json here says. Its folder there is the truth; what a person wants to see of
// it is copied here whenever somebody looks.
struct Away {
  Login login;
  std::string folder;   // there, absolute: where the job was submitted
  std::string run;      // likewise, the run folder
  std::string program;  // lockstep there, absolute

  bool operator==(const Away&) const = default;
};
std::optional<Away> read_away(const base::Path& run);  // nothing: the run is here
void write_away(const base::Path& run, const Away& away);
// User error where the run of this folder is elsewhere: what is written here, the next look at it would overwrite.
void refuse_if_away(const base::Path& run);

struct SendRequest {
  Login login;
  spec::Job job;
  std::string machine;                    // of --on: a document here, or a name that is known there
  base::Path run;                         // here
  std::string folder;                     // there, from the home folder; empty: lockstep/<name of the run>
  std::string program;                    // there; empty: lockstep on PATH
  int64_t most = 0;                       // bytes that are copied without asking
  std::vector<std::string> options = {};  // of submit, as they are
  std::function<void(std::string_view)> say;
};

struct Sent {
  Away away;
  std::vector<std::string> copied;
  base::Json answer;  // what `submit --json` said there
};

// Copies job, machine and small data to the login node, submits there, and notes it here. User errors as
// choose_parcel(), and what submit says there, with who must act; one when the folder here holds another run. Machine
// error when nobody can be reached, or there is no lockstep.
Sent send(const SendRequest& request);

// What the same program says there to these words, in the folder of the job.
site::Answer relay(const Away& away, const std::vector<std::string>& words);
base::Json relay_json(const Away& away, std::vector<std::string> words);  // likewise, with --json

// What a person wants to see of the run: journal, metrics, figures, pictures; with `everything` the weights too. No
// checkpoints.
enum class Fetch { to_look_at, everything };
void fetch(const Away& away, const base::Path& run, Fetch how);

// fetch(to_look_at) where the run is elsewhere; nothing otherwise. For verbs that look at a run.
void fetch_if_away(const base::Path& run);

}  // namespace lockstep::remote
