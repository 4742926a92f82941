// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "lockstep/watching/run_watch.h"
#include "lockstep/web/http/server.h"

namespace lockstep::verbs::report {

// What the server of `report --live` answers: "/" the page, "/run.json" what is new since the cursor in the query.
// Nothing else, and nothing of it changes the run.
web::Handler live_handler(std::shared_ptr<watching::RunWatch> watch);

// The lines that say how to get there: here, and from one's own machine through a tunnel.
std::string live_words(const std::string& host, int port, const std::string& token);

}  // namespace lockstep::verbs::report
