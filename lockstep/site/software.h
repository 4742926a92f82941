// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/base/file.h"

namespace lockstep::site {

// What is installed beside the driver.
struct Software {
  std::optional<std::string> mpirun;       // path
  std::string mpi_version;                 // "Open MPI 4.1.4"; empty: it did not say
  std::optional<std::string> mpi_plugin;   // our plug-in beside this library
  std::optional<std::string> torch_rooms;  // liblockstep_torch.so, likewise
  std::optional<std::string> nccl;         // libnccl.so.2, found by name; never opened
  std::string system;                      // "Debian GNU/Linux 12 (bookworm)"
  std::string kernel;                      // "6.1.0"
  std::string host;
  std::string container;  // "docker", "apptainer", ...; empty: none that we know
};

Software read_software();

// The first line of `mpirun --version` without its brackets: "mpirun (Open MPI) 4.1.4" -> "Open MPI 4.1.4".
std::string parse_mpi_version(std::string_view answer);
// PRETTY_NAME of /etc/os-release.
std::string parse_os_release(std::string_view content);
// The folder that holds this library.
base::Path library_folder();

}  // namespace lockstep::site
