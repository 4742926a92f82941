// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/comm/group.h"

namespace lockstep::mpi_test {

comm::Group& ranks();  // the group of this process, joined by main

}  // namespace lockstep::mpi_test
