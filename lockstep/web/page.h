// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/json.h"

namespace lockstep::web {

// One self-contained HTML page, every text in `data` as data, never as markup: lockstep/web/shared/page.html with
// "@[title]", "@[verb]", "@[data]" and the files that it names as "@[page.js]" put in. They are in lockstep/web/<verb>:
// page.js, and where the verb needs them own.css, own.js and images (whence beside the page itself it may show some);
// or in lockstep/web/shared (charts.js, page.css).
std::string render_page(std::string_view verb, const std::string& title, const base::Json& data);

}  // namespace lockstep::web
