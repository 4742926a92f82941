// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/software.h"

#include <dlfcn.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#include "lockstep/base/text.h"
#include "lockstep/site/command.h"
#include "lockstep/site/kernel_file.h"

namespace lockstep::site {
namespace {

std::optional<std::string> file_in(const base::Path& folder, const std::string& name) {
  std::error_code error;
  const base::Path file = folder / name;
  if (std::filesystem::exists(file, error)) return std::filesystem::weakly_canonical(file, error).string();
  return std::nullopt;
}

// Where the loader would look, then the wheels beside libtorch in a build tree.
std::optional<std::string> find_library(const std::string& name) {
  const char* path = std::getenv("LD_LIBRARY_PATH");
  std::vector<base::Path> folders{library_folder()};
  for (const auto& folder : base::split(path ? path : "", ':')) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
                             "/usr/local/lib", "/usr/local/cuda/lib64"}) {
    folders.emplace_back(folder);
  }
  std::error_code missing;
  const base::Path wheels = library_folder() / "../../.deps/libtorch/nvidia";
  for (const auto& entry : std::filesystem::directory_iterator(wheels, missing))
    folders.push_back(entry.path() / "lib");
  for (const auto& folder : folders) {
    if (auto file = file_in(folder, name)) return file;
  }
  return std::nullopt;
}

std::string container_name() {
  for (const char* name : {"APPTAINER_NAME", "SINGULARITY_NAME"}) {
    if (std::getenv(name)) return "apptainer";
  }
  if (::access("/.dockerenv", F_OK) == 0) return "docker";
  if (::access("/run/.containerenv", F_OK) == 0) return "podman";
  const char* named = std::getenv("container");  // systemd-nspawn, Charliecloud and others set it
  return named ? named : "";
}

}  // namespace

base::Path library_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&library_folder), &info) == 0 || !info.dli_fname) return ".";
  return base::Path(info.dli_fname).parent_path();
}

std::string parse_mpi_version(std::string_view answer) {
  std::string line(base::trim(answer.substr(0, answer.find('\n'))));
  const size_t open = line.find('(');
  const size_t close = line.find(')', open);
  if (open == std::string::npos || close == std::string::npos) return line;
  return base::text(line.substr(open + 1, close - open - 1), line.substr(close + 1));
}

std::string parse_os_release(std::string_view content) {
  constexpr std::string_view kKey = "PRETTY_NAME=";
  for (const auto& line : base::split(content, '\n')) {
    if (line.compare(0, kKey.size(), kKey) != 0) continue;
    std::string name = line.substr(kKey.size());
    if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    return name;
  }
  return "";
}

Software read_software() {
  Software found;
  found.mpirun = find_on_path("mpirun");
  if (found.mpirun) {
    const auto answer = run_for_output({*found.mpirun, "--version"}, std::chrono::milliseconds(500));
    if (answer) found.mpi_version = parse_mpi_version(*answer);
  }
  found.mpi_plugin = file_in(library_folder(), "liblockstep_mpi.so");
  found.torch_rooms = file_in(library_folder(), "liblockstep_torch.so");
  found.nccl = find_library("libnccl.so.2");
  found.system = parse_os_release(kernel_text("/etc/os-release"));
  utsname names{};
  if (::uname(&names) == 0) {
    found.kernel = names.release;
    found.host = names.nodename;
  }
  found.container = container_name();
  return found;
}

}  // namespace lockstep::site
