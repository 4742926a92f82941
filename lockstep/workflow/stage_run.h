// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/run/folder.h"
#include "lockstep/spec/workflow.h"
#include "lockstep/tune/child.h"
#include "lockstep/workflow/digest.h"
#include "lockstep/workflow/freshness.h"
#include "lockstep/workflow/stage_record.h"

namespace lockstep::workflow {

// What a stage gets on this node.
struct StageShare {
  std::vector<int> cores = {};         // those alone; empty: as this process
  std::vector<std::string> gpus = {};  // as CUDA_VISIBLE_DEVICES names them
  bool here = false;                   // on a login node, because the user wants it so
};

// One stage under way, on this node. Outputs that the command names by {output} are made under another name and renamed
// when all are there; others that are there are put aside before it starts. The previous outputs go when the new ones
// are in their places, and are put back when it fails. A stage that goes on writes in place; what it went on from and
// wrote is put aside (PATH.previous) when it has to start over. The record is written last.
class StageRun {
 public:
  // Ends what an earlier attempt left behind, then starts. User error when an input is missing or another process works
  // on the stage.
  StageRun(const spec::Stage& stage, const StatePaths& paths, const Freshness& freshness, const StageShare& share,
           const std::string& program);

  bool poll(Digests& digests);  // true: it is over; never waits for the command
  void send(int signal) const { child_->send(signal); }

  bool good() const { return trouble_.empty(); }
  const std::string& trouble() const { return trouble_; }  // why it failed
  int code() const { return code_; }                       // of the command
  double seconds() const { return seconds_; }              // of this attempt
  const spec::Stage& stage() const { return stage_; }
  const StageShare& share() const { return share_; }
  const tune::Child& child() const { return *child_; }

 private:
  std::vector<std::string> make_room();  // the command's words, with where it shall write
  void start(const std::vector<std::string>& words);
  void complete(Digests& digests);
  void move_outputs();
  void remove_put_aside();
  void note(std::string_view event, const base::Json& fields) const;  // in the workflow's journal
  void fail();

  spec::Stage stage_;
  StatePaths paths_;
  Freshness freshness_;
  StageShare share_;
  std::string program_;
  run::RunFolder held_;
  Attempt attempt_;
  std::vector<std::pair<std::string, std::string>> made_;  // where an output is made, and where it belongs
  std::vector<std::string> aside_;                         // outputs whose previous content has another name
  double started_ = 0;                                     // steady seconds
  std::unique_ptr<tune::Child> child_;
  bool over_ = false;
  int code_ = 0;
  double seconds_ = 0;
  std::string trouble_;
};

// Kills every process of this user that has the token of an attempt of this stage in its environment; returns how many.
// On this host. `stage`: its folder in the state.
int64_t end_left_behind(const base::Path& stage, const std::string& token);

}  // namespace lockstep::workflow
