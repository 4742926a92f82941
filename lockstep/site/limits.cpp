// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/limits.h"

#include <sys/resource.h>

namespace lockstep::site {
namespace {

Limit limit_of(int resource) {
  rlimit values{};
  if (::getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &values) != 0) return {};
  Limit limit;
  if (values.rlim_cur != RLIM_INFINITY) limit.soft = values.rlim_cur;
  if (values.rlim_max != RLIM_INFINITY) limit.hard = values.rlim_max;
  return limit;
}

}  // namespace

Limits read_limits() {
  return {.open_files = limit_of(RLIMIT_NOFILE),
          .locked_bytes = limit_of(RLIMIT_MEMLOCK),
          .stack_bytes = limit_of(RLIMIT_STACK),
          .address_bytes = limit_of(RLIMIT_AS),
          .processes = limit_of(RLIMIT_NPROC),
          .core_bytes = limit_of(RLIMIT_CORE)};
}

}  // namespace lockstep::site
