// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/torch_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::site {
namespace {

using base::Blame;
using base::Error;
using base::text;

std::string_view minor_of(std::string_view version) {
  return version.substr(0, version.find('.', std::min(version.find('.'), version.size() - 1) + 1));
}

std::string install_line(const std::string& built_with) {
  return text("python -m pip install 'torch==", minor_of(built_with), ".*'");
}

base::Path file_of(void* library) {
  link_map* map = nullptr;
  return ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map ? base::Path(map->l_name) : base::Path();
}

}  // namespace

std::string torch_version(const base::Path& library) {
  const base::Path file = library.parent_path().parent_path() / "version.py";
  if (!base::is_there(file)) return "";
  const std::string content = base::read_file(file, uint64_t{1} << 20);
  for (const std::string_view name : {"\n__version__ = '", "\n__version__ = \""}) {
    const size_t at = ("\n" + content).find(name);
    if (at == std::string::npos) continue;
    const size_t begin = at + name.size() - 1;  // without the line end that was put before it
    return content.substr(begin, content.find(name.back(), begin) - begin);
  }
  return "";
}

bool is_same_minor(std::string_view version, std::string_view other) {
  return !version.empty() && !other.empty() && minor_of(version) == minor_of(other);
}

void open_torch_beside(const std::string& built_with) {
  open_torch_beside(built_with, "libtorch_cpu.so");
}

void open_torch_beside(const std::string& built_with, const std::string& name) {
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    const std::string why = ::dlerror();
    if (why.find("cannot open shared object file") == std::string::npos) {  // it is there
      throw Error(Blame::machine, text("cannot open ", name, ": ", why),
                  "is there too little memory for this process? see ulimit -v, and the job's own limit");
    }
    throw Error(Blame::machine, text("no torch beside this wheel, or not all of it: ", why), install_line(built_with));
  }
  const base::Path file = file_of(library);
  const std::string found = torch_version(file);
  if (is_same_minor(found, built_with)) return;
  throw Error(Blame::machine,
              text("torch ", found.empty() ? "of an unknown version" : found, " in ",
                   file.parent_path().lexically_normal().string(), ", but this wheel was built with ", built_with),
              text(install_line(built_with), "; or build the wheel again beside that torch"));
}

}  // namespace lockstep::site
