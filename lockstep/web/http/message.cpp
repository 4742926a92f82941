// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/message.h"

#include <algorithm>

namespace lockstep::web {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool same_name(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                    [](char a, char b) { return lower(a) == lower(b); });
}

const std::string* find_value(const std::vector<NamedValue>& values, std::string_view name) {
  for (const auto& value : values) {
    if (same_name(value.name, name)) return &value.value;
  }
  return nullptr;
}

Response text_response(std::string body, int status) {
  return {status, {{"Content-Type", "text/plain; charset=utf-8"}}, std::move(body)};
}

Response json_response(const base::Json& body, int status) {
  return {status, {{"Content-Type", "application/json"}}, body.dump(-1) + "\n"};
}

Response error_response(int status, std::string_view why) {
  base::Json body = base::Json::object();
  body["error"] = why;
  return json_response(body, status);
}

Response page_response(std::string html) {
  return {200,
          {{"Content-Type", "text/html; charset=utf-8"},
           {"Content-Security-Policy",
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data: blob:; "
            "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"}},
          std::move(html)};
}

const char* reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 421:
      return "Misdirected Request";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

}  // namespace lockstep::web
