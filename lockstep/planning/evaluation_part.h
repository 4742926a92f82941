// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/forecast/recording.h"

namespace lockstep::planning {

// A recorded step with an evaluation between two steps tells of the same step with another evaluation, or with none:
// what an evaluation allocates it gives back, and the steps around it do not know of it. REQUIRES: recordings of
// trace_step() with evaluation_rows, without ZeRO (which puts the weights together for an evaluation).

// The step without it, equal to what is traced so.
forecast::Recording without_evaluation(const forecast::Recording& recording);

// The step as it runs where it is not captured: without the evaluation beside a graph; equal to what is traced so.
forecast::Recording without_graph(forecast::Recording recording);

// The step of `recording` with the evaluation of `other`, of which nothing else counts. REQUIRES: the same step at
// another batch (Family::corresponds).
forecast::Recording with_evaluation_of(const forecast::Recording& recording, const forecast::Recording& other);

}  // namespace lockstep::planning
