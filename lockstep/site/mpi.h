// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "plugins/mpi/mpi_plugin.h"

namespace lockstep::site {

// The plug-in beside liblockstep_core.so, opened; machine error with the line that builds it when it is not there.
const lockstep_mpi& open_mpi_plugin();

// Machine error in MPI's own words unless `code` is 0.
void check_mpi(const lockstep_mpi& mpi, int code, const char* call);

// MPI for the length of a scope. It ends with the scope, except while an error unwinds: the others would wait for us in
// vain, whereas a process that leaves without MPI_Finalize makes the launcher end them all. One in a process.
class Mpi {
 public:
  Mpi();
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  const lockstep_mpi& plugin() const { return plugin_; }
  int64_t rank() const { return plugin_.rank(); }
  int64_t size() const { return plugin_.size(); }
  // Waits for all ranks without keeping a core busy: for work that takes minutes.
  void barrier() const;
  // Ends every rank at once with that exit code.
  [[noreturn]] void abort(int exit_code) const;

 private:
  const lockstep_mpi& plugin_;
  int exceptions_;
};

}  // namespace lockstep::site
