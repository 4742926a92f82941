// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::base {

// A memory map whose file is shortened, or whose disk fails, ends the process by SIGBUS when such a page is touched.
// From here on that is told as a machine error which names the file, with its exit code. Unless somebody else handles
// that signal already. Call it before other threads and libraries start.
void name_lost_mappings();

// What is mapped where, for as long as it is. Calls may come from any thread.
void note_mapping(const std::byte* data, size_t size, std::string_view path);
void forget_mapping(const std::byte* data);

}  // namespace lockstep::base
