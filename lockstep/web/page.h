// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/json.h"

namespace lockstep::web {

// One self-contained HTML page, every text in `data` as data, never as markup: lockstep/web/shared/page.html with its
// markers filled in. `page` is a folder of lockstep/web, with page.js and what else it has to itself; the table in
// page.cpp says what of lockstep/web/shared it takes and what it may load.
std::string render_page(std::string_view page, const std::string& title, const base::Json& data);

}  // namespace lockstep::web
