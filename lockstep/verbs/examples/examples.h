// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "lockstep/base/embedded.h"
#include "lockstep/base/file.h"

namespace lockstep::verbs::examples {

struct Copied {
  std::vector<base::Path> written;
  std::vector<base::Path> unchanged;  // were there already, with the same content
};

// Where an embedded file goes, relative to the folder that is asked for; empty: it is no example.
base::Path target_of(std::string_view embedded_name);

// Writes every example among `files` below `folder`; scripts become executable. User error, before anything is written,
// where a file is there with another content: somebody has worked on it.
Copied copy_examples(const std::vector<base::Embedded>& files, const base::Path& folder);

}  // namespace lockstep::verbs::examples
