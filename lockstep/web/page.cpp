// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/page.h"

#include <algorithm>
#include <iterator>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::web {
namespace {

using base::Json;

// What the pages differ in, besides their own page.js.
struct PageKind {
  std::string_view page;     // its folder
  std::string_view command;  // that makes it, for its title
  std::string_view style;    // behind page.css; empty: none
  std::string_view script;   // before page.js; empty: none
  std::string_view loads;    // what it may load besides what stands in it, as a Content-Security-Policy has it
};
constexpr std::string_view kAlone = "img-src data:";
constexpr std::string_view kImagesBeside = "img-src data: 'self' file:";
constexpr std::string_view kOfServer = "img-src 'self' data: blob:; connect-src 'self'";
constexpr PageKind kPages[] = {
    {"plan", "plan", "own.css", "own.js", kAlone},
    {"predict", "predict", "own.css", "", kImagesBeside},
    {"report", "report", "", "run_parts.js", kAlone},
    {"compare", "report", "", "run_parts.js", kAlone},
    {"live", "report --live", "", "run_parts.js", kOfServer},
    {"serve", "serve", "own.css", "", kOfServer},
    {"tune", "tune", "study.css", "", kAlone},
    {"partition", "tune", "study.css", "", kAlone},
    {"workflow", "workflow", "", "", kAlone},
};

const PageKind& kind_of(std::string_view page) {
  const auto* const found =
      std::find_if(std::begin(kPages), std::end(kPages), [&](const PageKind& kind) { return kind.page == page; });
  base::ensure(found != std::end(kPages), base::text("there is a page '", page, "'"));
  return *found;
}

// A file of the page's own folder, or else a shared one: charts and style.
std::string_view page_file(std::string_view page, std::string_view name) {
  if (name.empty()) return {};
  for (const std::string_view owner : {page, std::string_view("shared")}) {
    for (const auto& file : base::embedded_files()) {
      if (file.name == base::text("lockstep/web/", owner, "/", name)) return file.content;
    }
  }
  base::ensure(false, base::text("the page's ", name, " is built in"));
  return {};
}

// JSON inside a <script> element: '<' never appears, so no text can close the element or open a comment.
std::string script_safe(const std::string& json) {
  std::string out;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      out += c;
    }
  }
  return out;
}

std::string html_escape(std::string_view raw) {
  std::string out;
  for (const char c : raw) {
    const char* entity = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : nullptr;
    if (entity) {
      out += entity;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

// The template is read once from front to back: what is put in is never searched for markers.
std::string render_page(std::string_view page, const std::string& title, const Json& data) {
  const PageKind& kind = kind_of(page);
  std::string_view rest = page_file("shared", "page.html");
  std::string whole;
  while (true) {
    const size_t open = rest.find("@[");
    whole += rest.substr(0, open);
    if (open == std::string_view::npos) return whole;
    const size_t close = rest.find(']', open);
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    if (name == "title") {
      whole += html_escape(title);
    } else if (name == "data") {
      whole += script_safe(data.dump(-1));
    } else if (name == "command") {
      whole += kind.command;
    } else if (name == "loads") {
      whole += kind.loads;
    } else {
      whole += page_file(page, name == "style" ? kind.style : name == "script" ? kind.script : name);
    }
    rest.remove_prefix(close + 1);
  }
}

}  // namespace lockstep::web
