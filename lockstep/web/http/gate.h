// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/web/http/head.h"
#include "lockstep/web/http/message.h"

namespace lockstep::web {

// Who may ask. Every user of a machine reaches its loopback ports, and every page in a browser does: the token keeps
// out the former, the names of hosts (DNS rebinding) and origins (forged requests) the latter.
struct Gate {
  std::string token;                    // empty: none is asked for
  std::vector<std::string> hosts = {};  // besides localhost, 127.0.0.1 and [::1]; ports do not count (SSH tunnels)
  std::vector<std::string> methods = {"GET", "HEAD", "POST"};
  bool is_tls = false;
};

// The answer to a request that may not pass, none for one that may. A GET with the right ?token= is sent on to the
// same place without it, with a cookie: so a browser comes in by a link, and the token is in no history and no log.
std::optional<Response> refuse_at(const Gate& gate, const Head& head);

// In a time that says nothing about either.
bool same_secret(std::string_view one, std::string_view other);

// Name of the cookie for this token: cookies know no ports, so servers of one host must not share a name.
std::string cookie_name(std::string_view token);

}  // namespace lockstep::web
