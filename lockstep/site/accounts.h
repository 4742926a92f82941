// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::site {

// A project that this user may charge on a Slurm cluster.
struct Account {
  std::string name;
  std::vector<std::string> qos;  // qualities of service it may ask for; empty: not said
  std::string default_qos;

  bool operator==(const Account&) const = default;
};

// Asks `sacctmgr`, or `sshare` where it does not answer; none where accounting is off.
std::vector<Account> read_accounts();

// The answers of `sacctmgr -nP show assoc format=Account,QOS,DefaultQOS` and of `sshare -h -P -U -o Account`. A project
// that stands there several times (once a partition) is one.
std::vector<Account> parse_accounts(std::string_view answer);

}  // namespace lockstep::site
