// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"
#include "lockstep/spec/plan.h"

namespace lockstep::chain {

// How long a run is on so many nodes, by the plan or by the user.
struct PlannedShape {
  int64_t nodes = 1;
  bool feasible = false;    // it fits, and jobs under the walltime make progress
  double seconds = 0;       // of the whole run with start-ups and saves, without the queue; 0: not known
  int64_t jobs = 0;         // under the walltime; 0: not known, or none would make progress
  std::string why_not;      // where it is not feasible
  std::string note = {};    // how an estimate was made, or what is missing to make one
  int64_t memory = 0;       // bytes of main memory on each node; 0: not known
  int64_t rank_memory = 0;  // likewise, what each further rank on a node's processors adds: weights and program twice

  bool operator==(const PlannedShape&) const = default;
};

struct Planned {
  std::vector<PlannedShape> shapes;
  std::string why_not;          // what `lockstep plan` said when it could not plan
  bool is_users_fault = false;  // the job itself is at fault: training would refuse it as well

  const PlannedShape* of(int64_t nodes) const;
};

struct PlanQuestion {
  std::string program;  // this program
  spec::Job job;
  spec::Machine machine;       // as the chain will use it: without its GPUs when the processors compute
  std::vector<int64_t> nodes;  // whole nodes
  double walltime = 0;         // of one job; 0: as job and machine say
};
// Runs `lockstep plan` as a child: the step is traced on a simulated GPU, which no other verb may have in its process.
Planned ask_plan(const PlanQuestion& question);

// The shapes in a plan document: the job as written; the best option where a node count stands
// there more than once.
Planned parse_shapes(const spec::Plan& plan);

// Several nodes whose processors compute, from the plan of one node: its steps and evaluations shared by all of them,
// and after each step the sum of the gradients over the link between nodes, as nothing hid it. A shape with a note: an
// estimate, or without seconds what it would take to make one. Node counts that the plan knows stay as they are.
void estimate_nodes(const spec::Plan& plan, const PlanQuestion& question, Planned& planned);

// "1=2.5,2=1.4": hours by nodes, of the user. `walltime` of one job gives the number of jobs; 0: one.
Planned parse_hours(const std::string& words, double walltime);

}  // namespace lockstep::chain
