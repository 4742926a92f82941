// SPDX-License-Identifier: Apache-2.0
#include "lockstep/site/mpi.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/site/launch.h"

namespace lockstep::site {

using base::Blame;
using base::Error;
using base::text;

namespace {

base::Path plugin_file() {
  Dl_info here{};
  ::dladdr(reinterpret_cast<const void*>(&open_mpi_plugin), &here);
  return base::Path(here.dli_fname ? here.dli_fname : "").parent_path() / "liblockstep_mpi.so";
}

// An MPI of another kind than the launcher's does not fail: every process becomes rank 0 of a world of one, and N runs
// would work over each other.
void check_world(const lockstep_mpi& mpi, const Launch& launch) {
  if (mpi.size() == launch.size) return;
  std::string name = text(mpi.library());  // "MPICH Version:\t4.0.2\nMPICH Release date: ..."
  name = name.substr(0, name.find_first_of(",\n"));
  std::replace(name.begin(), name.end(), '\t', ' ');
  const std::string words = text(launch.launcher, " started ", launch.size, " ranks, but the plug-in's MPI (", name,
                                 ") sees a world of ", mpi.size(), ": they are of different kinds");
  if (launch.launcher == "srun") {
    throw Error(Blame::machine, words,
                "start with `srun --mpi=pmix` (`srun --mpi=list` shows what it speaks), or with this MPI's own mpirun");
  }
  throw Error(Blame::machine, words,
              text("start with the mpirun of that MPI, or build the plug-in with the compiler wrapper beside your "
                   "launcher: mpicxx -O2 -shared -fPIC plugins/mpi/mpi_plugin.cpp -o ",
                   plugin_file().string()));
}

// Without a PMI an MPI ends the process at its start, with a page that names neither the command nor the way out.
void check_pmi(const Launch& launch) {
  if (launch.launcher != "srun" || launch.has_pmi) return;
  throw Error(Blame::user, text("srun started ", launch.size, " ranks without a PMI: their MPI cannot find the others"),
              "srun --mpi=pmix (srun --mpi=list shows what this Slurm has), or mpirun");
}

}  // namespace

const lockstep_mpi& open_mpi_plugin() {
  const base::Path file = plugin_file();
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
  const Launch launch = read_launch();
  if (launch.has_company) check_pmi(launch);
  check_mpi(plugin_, plugin_.init(), "start");
  if (launch.has_company) check_world(plugin_, launch);
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
