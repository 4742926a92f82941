// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/site/hosts.h"

namespace lockstep::site {

// The network interface by which the ranks talk ("ib0"); it wins over what follows.
constexpr const char* kInterfaceVariable = "LOCKSTEP_INTERFACE";
constexpr const char* kLoopback = "lo";

// What kInterfaceVariable names; the loopback one when all ranks are on one host; else empty: MPI and NCCL choose.
std::string rank_interface(bool one_host);

// Whether a launcher that is given these hosts (none: it is to find them itself) starts all ranks here.
bool all_ranks_here(const std::vector<Share>& hosts);

// Words for Open MPI's mpirun by which its daemons and its ranks use the interface alone; none for those of the two
// whose interfaces the user has named to Open MPI himself.
std::vector<std::string> interface_words(const std::string& interface);

// The environment for a launcher whose line has the words for the loopback interface: with the library that has it and
// its ranks listen there alone, because Open MPI 4.1 listens on every interface whichever it uses. Otherwise as it is.
std::vector<std::string> launcher_environment(const std::vector<std::string>& line);

}  // namespace lockstep::site
