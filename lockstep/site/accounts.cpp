// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/accounts.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"

namespace lockstep::site {
namespace {

constexpr std::chrono::milliseconds kAccountPatience{2000};

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry ? entry->pw_name : "";
}

}  // namespace

std::vector<Account> parse_accounts(std::string_view answer) {
  std::vector<Account> all;
  for (const auto& line : base::split(answer, '\n')) {
    const auto words = base::split(base::trim(line), '|');
    if (words[0].empty()) continue;
    auto found = std::find_if(all.begin(), all.end(), [&](const Account& known) { return known.name == words[0]; });
    if (found == all.end()) found = all.insert(all.end(), {words[0], {}, ""});
    if (words.size() < 3) continue;
    for (const auto& qos : base::split(words[1], ',')) {
      const bool known = std::find(found->qos.begin(), found->qos.end(), qos) != found->qos.end();
      if (!qos.empty() && !known) found->qos.push_back(qos);
    }
    if (found->default_qos.empty()) found->default_qos = words[2];
  }
  return all;
}

std::vector<Account> read_accounts() {
  const std::string user = user_name();
  if (user.empty()) return {};
  if (find_on_path("sacctmgr")) {
    const auto answer =
        run_for_output({"sacctmgr", "-nP", "show", "assoc", "where", "user=" + user, "format=Account,QOS,DefaultQOS"},
                       kAccountPatience);
    if (answer && !base::trim(*answer).empty()) return parse_accounts(*answer);
  }
  if (!find_on_path("sshare")) return {};
  return parse_accounts(run_for_output({"sshare", "-h", "-P", "-U", "-o", "Account"}, kAccountPatience).value_or(""));
}

}  // namespace lockstep::site
