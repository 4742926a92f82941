// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// Images with sentences: a table with a column of captions (TSV, CSV; Flickr8k's "a.jpg#0 TAB words", Flickr30k's
// "a.jpg| 0| words"), a JSON array or JSON lines of {"image": ..., "caption": "..." or [...]}, or {"images":
// [{"filename", "split", "sentences": [{"raw"}]}]}. Captions of the same image are put together, in the .json member:
// {"captions"}.
bool looks_like_captions(const SourceOptions& options);
std::unique_ptr<Source> open_captions(const SourceOptions& options);

}  // namespace lockstep::sources
