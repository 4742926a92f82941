// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/spec/fields.h"

namespace lockstep::spec {

// The dotted key of `root` that is meant by a word which PyTorch, Keras, timm, Lightning or Hugging Face use for it:
// "learning_rate" is training.optimizer.lr. Nothing: not known, or no key of this document.
std::optional<std::string> key_by_other_name(const Section& root, std::string_view word);

}  // namespace lockstep::spec
