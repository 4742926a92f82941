// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/group.h"
#include "lockstep/model/batch_norm.h"

namespace lockstep::step {

// Batch norm over the rows of all ranks: values, gradients and running statistics are those of one rank with all the
// rows, up to the rounding of sums (tests: 1e-12 in double precision, 1e-5 in float). Each rank sends count, mean and
// sum of squared deviations of its rows; they are merged in double precision (Chan, Golub and LeVeque, 1979), in rank
// order, so every rank ends with the same bits: no difference of large squares, however far the mean is from zero.
// Ranks may have different counts of rows, or none. One all-gather of 2 x channels + 1 numbers forward, one all-reduce
// of 2 x channels backward. Every rank calls it, and its backward, in the same order; `group` must outlive backward.
at::Tensor sync_batch_norm(const model::BatchNormCall& call, comm::Group& group);

}  // namespace lockstep::step
