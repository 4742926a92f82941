// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/json.h"

namespace lockstep::web {

// A named value: a header field, or a parameter of the query.
struct NamedValue {
  std::string name;
  std::string value;

  bool operator==(const NamedValue&) const = default;
};

bool same_name(std::string_view one, std::string_view other);  // of header fields: upper and lower case are the same
// The first one of that name; null: there is none.
const std::string* find_value(const std::vector<NamedValue>& values, std::string_view name);

// A request as a handler sees it: whole, checked, within the limits.
struct Request {
  std::string method;  // "GET", "HEAD", "POST"
  std::string path;    // decoded, from "/" on; without "..", "." and empty segments
  std::vector<NamedValue> query = {};
  std::vector<NamedValue> headers = {};
  std::string body = {};
  std::string remote = {};  // address of the client

  const std::string* header(std::string_view name) const { return find_value(headers, name); }
  const std::string* parameter(std::string_view name) const { return find_value(query, name); }
};

struct Response {
  int status = 200;
  std::vector<NamedValue> headers = {};
  std::string body = {};

  void set(std::string name, std::string value) { headers.push_back({std::move(name), std::move(value)}); }
};

Response text_response(std::string body, int status = 200);
Response json_response(const base::Json& body, int status = 200);
Response error_response(int status, std::string_view why);  // {"error": why}
// A page of ours (page.h): its script may speak with this server, nothing else is loaded from anywhere.
Response page_response(std::string html);

const char* reason_phrase(int status);  // "Not Found"

}  // namespace lockstep::web
