// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/loader/collections.h"

namespace lockstep::loader {

// What a run reads, for people: images and classes of each part, files that are left out, classes that only one of the
// parts has, words that training did not have often enough (task caption), images of more objects than the task learns
// (Task::object_slots; 0: it learns all).
std::vector<std::string> data_lines(const Collections& collections, int64_t object_slots = 0);

// A file may have line ends in its name: it must not forge a line of the log.
std::string on_one_line(const std::string& name);

}  // namespace lockstep::loader
