// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/mpi.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"

namespace lockstep::site {

using base::Blame;
using base::Error;
using base::text;

const lockstep_mpi& open_mpi_plugin() {
  Dl_info here{};
  ::dladdr(reinterpret_cast<const void*>(&open_mpi_plugin), &here);
  const auto file = base::Path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_mpi.so";
  // Global: Open MPI's own components look for their symbols in what is loaded.
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    throw Error(Blame::machine, text("cannot open the MPI plug-in: ", ::dlerror()),
                text("load the site's MPI module, then: mpicxx -O2 -shared -fPIC plugins/mpi/mpi_plugin.cpp -o ",
                     file.string()));
  }
  using Entry = const lockstep_mpi* (*)();
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, LOCKSTEP_MPI_ENTRY));
  if (!entry || entry()->version != LOCKSTEP_MPI_VERSION) {
    throw Error(Blame::machine, text(file.string(), " is no MPI plug-in of version ", LOCKSTEP_MPI_VERSION),
                "build plugins/mpi of this version again");
  }
  return *entry();
}

void check_mpi(const lockstep_mpi& mpi, int code, const char* call) {
  if (code == 0) return;
  char words[512];
  mpi.explain(code, words, sizeof words);
  throw Error(Blame::machine, text("MPI ", call, " failed: ", words),
              "a rank may be gone: see its last lines; `lockstep doctor` checks MPI");
}

Mpi::Mpi() : plugin_(open_mpi_plugin()), exceptions_(std::uncaught_exceptions()) {
  check_mpi(plugin_, plugin_.init(), "start");
}

Mpi::~Mpi() {
  if (std::uncaught_exceptions() == exceptions_) plugin_.finalize();
}

void Mpi::barrier() const {
  lockstep_mpi_request* request = nullptr;
  check_mpi(plugin_, plugin_.barrier(&request), "barrier");
  for (int32_t done = 0; done == 0;) {
    check_mpi(plugin_, plugin_.test(request, &done), "barrier");
    if (done == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Mpi::abort(int exit_code) const {
  plugin_.abort(exit_code);
  std::_Exit(exit_code);
}

}  // namespace lockstep::site
