// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lockstep/base/file.h"

namespace lockstep::site {

// The version in torch/version.py, given the library torch/lib/libtorch_cpu.so: "2.11.0+cu130". Empty where that file
// is not there or names none.
std::string torch_version(const base::Path& library);

// True when both have the same major and minor number: libtorch promises its binary interface no further.
bool is_same_minor(std::string_view version, std::string_view other);

// For a program that was installed as a wheel: opens the libtorch of the environment, before anything that was compiled
// against it. Machine error where there is none, or one of another minor version than `built_with`.
void open_torch_beside(const std::string& built_with);
// The same with a library of this name, where the loader finds it.
void open_torch_beside(const std::string& built_with, const std::string& name);

}  // namespace lockstep::site
