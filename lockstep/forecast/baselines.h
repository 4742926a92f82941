// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lockstep/forecast/recording.h"

namespace lockstep::forecast {

// What others would have said about the memory of a step, for the same tables as our own figure.

// The weights alone: "the model has 100 MB".
int64_t weights_only(const Recording& recording);

// The peak of live bytes, each storage rounded up to 512, warm steps: torch's MemTracker and its relatives. No
// segments, no workspaces.
int64_t live_bytes_peak(const Recording& recording);

// Values that the forward pass of one sample computes ("nodes"), from the first step.
double nodes_per_sample(const Recording& recording);

// The heuristic of a workstation's justification page: (weights + nodes) x 4 bytes x batch x elements of the mask
// (3 x 3 as a rule). As it is written there.
double deepsim_heuristic(const Recording& recording, int64_t mask_elements = 9);

// What that page did with it: 7.5 GB for ResNet-50 at batch 32, times the ratio of the parameters.
double deepsim_by_parameters(const Recording& recording);

}  // namespace lockstep::forecast
