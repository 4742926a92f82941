// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/base/json.h"
#include "lockstep/spec/fields.h"

namespace lockstep::spec {

// The JSON Schema (draft 2020-12) of a document, so that editors complete and check it. It accepts what the parser
// accepts, apart from the rules between fields.
base::Json json_schema(const Section& root);

}  // namespace lockstep::spec
