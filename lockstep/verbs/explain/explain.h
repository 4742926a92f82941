// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lockstep/base/json.h"
#include "lockstep/spec/fields.h"

namespace lockstep::verbs::explain {

// The table of the document called "job" or "machine"; user error for any other name.
const spec::Section& document_section(const std::string& name);

// What is known of a key: "training.global_batch", "machine.links.inter", "job". A key without its document is looked
// for in the job, then in the machine; a last part alone ("lr") is enough where it is the only one. User error with
// the nearest keys otherwise.
base::Json explain_key(const std::string& key);
base::Json explain_all();  // every document, all the way down

std::string explanation_text(const base::Json& explanation);
std::string overview_text();
std::string config_markdown();  // docs/config.md

}  // namespace lockstep::verbs::explain
