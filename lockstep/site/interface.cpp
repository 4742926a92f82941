// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/interface.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"

namespace lockstep::site {
namespace {

using base::text;

constexpr const char* kDaemons = "oob_tcp_if_include";
constexpr std::string_view kPreload = "LD_PRELOAD=";

bool is_set(const std::string& variable) {
  return std::getenv(variable.c_str()) != nullptr;
}

// "n1.cluster" and "n1" are one host.
std::string_view short_name(std::string_view host) {
  return host.substr(0, host.find('.'));
}

// Empty when it is not beside our libraries, or under a name that LD_PRELOAD cannot hold.
std::string listen_library() {
  Dl_info here{};
  ::dladdr(reinterpret_cast<const void*>(&rank_interface), &here);
  const auto file = std::filesystem::path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_listen.so";
  std::error_code error;
  const std::string name = std::filesystem::absolute(file, error).string();
  return ::access(name.c_str(), R_OK) == 0 && name.find_first_of(": ") == std::string::npos ? name : "";
}

}  // namespace

std::string rank_interface(bool one_host) {
  const char* named = std::getenv(kInterfaceVariable);
  if (named && *named) return named;
  return one_host ? kLoopback : "";
}

bool all_ranks_here(const std::vector<Share>& hosts) {
  if (hosts.size() == 1) return short_name(hosts[0].host) == short_name(host_name());
  if (!hosts.empty() || is_set("OMPI_MCA_orte_default_hostfile")) return false;
  return allocated_hosts(read_scheduler()).size() < 2;
}

std::vector<std::string> interface_words(const std::string& interface) {
  std::vector<std::string> words;
  if (interface.empty()) return words;
  for (const std::string part : {"oob_tcp_if_", "btl_tcp_if_"}) {
    if (is_set(text("OMPI_MCA_", part, "include")) || is_set(text("OMPI_MCA_", part, "exclude"))) continue;
    words.insert(words.end(), {"--mca", part + "include", interface});
  }
  return words;
}

std::vector<std::string> launcher_environment(const std::vector<std::string>& line) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable; ++variable) all.emplace_back(*variable);
  const auto daemons = std::find(line.begin(), line.end(), kDaemons);
  const bool here = daemons != line.end() && daemons + 1 != line.end() && *(daemons + 1) == kLoopback;
  const std::string library = here ? listen_library() : "";
  if (library.empty()) return all;
  const auto own =
      std::find_if(all.begin(), all.end(), [](const std::string& one) { return one.starts_with(kPreload); });
  if (own == all.end()) {
    all.push_back(text(kPreload, library));
  } else {
    *own += ":" + library;
  }
  return all;
}

}  // namespace lockstep::site
