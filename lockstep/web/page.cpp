// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/page.h"

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::web {
namespace {

using base::Json;

// A file of the verb's own folder, or else a shared one: charts and style. "own.css?": nothing where there is none.
std::string_view page_file(std::string_view verb, std::string_view name) {
  const bool may_lack = name.ends_with('?');
  if (may_lack) name.remove_suffix(1);
  for (const std::string_view owner : {verb, std::string_view("shared")}) {
    for (const auto& file : base::embedded_files()) {
      if (file.name == base::text("lockstep/web/", owner, "/", name)) return file.content;
    }
  }
  base::ensure(may_lack, base::text("the page's ", name, " is built in"));
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
std::string render_page(std::string_view verb, const std::string& title, const Json& data) {
  std::string_view rest = page_file(verb, "page.html");
  std::string page;
  while (true) {
    const size_t open = rest.find("@[");
    page += rest.substr(0, open);
    if (open == std::string_view::npos) return page;
    const size_t close = rest.find(']', open);
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    if (name == "title") {
      page += html_escape(title);
    } else if (name == "verb") {
      page += verb;
    } else if (name == "data") {
      page += script_safe(data.dump(-1));
    } else {
      page += page_file(verb, name);
    }
    rest.remove_prefix(close + 1);
  }
}

}  // namespace lockstep::web
