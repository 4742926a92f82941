// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/* The whole interface between Lockstep and MPI: a versioned struct of C functions. No torch, no Lockstep headers, so
 * that a site's own compiler makes the plug-in from this folder alone:
 *   mpicxx -O2 -shared -fPIC mpi_plugin.cpp -o liblockstep_mpi.so      (then put it beside liblockstep_core.so)
 */

#define LOCKSTEP_MPI_VERSION 3
#define LOCKSTEP_MPI_ENTRY "lockstep_mpi_plugin"

extern "C" {

typedef enum lockstep_mpi_type {
  LOCKSTEP_MPI_F32 = 0,
  LOCKSTEP_MPI_F64 = 1,
  LOCKSTEP_MPI_I32 = 2,
  LOCKSTEP_MPI_I64 = 3,
  LOCKSTEP_MPI_BF16 = 4 /* each addition in f32, its sum rounded to nearest even; NaN stays NaN */
} lockstep_mpi_type;

typedef struct lockstep_mpi_request lockstep_mpi_request; /* freed by the test() that finds it done, and by wait() */

/* Functions return 0, or an MPI error code that `explain` turns into words. Collectives run over all ranks and must be
 * started in the same order on each. Buffers stay the plug-in's until the request is done. */
typedef struct lockstep_mpi {
  int32_t version;
  int (*init)(void); /* asks for MPI_THREAD_MULTIPLE; -1 when the library offers less */
  int32_t (*rank)(void);
  int32_t (*size)(void);
  int (*all_reduce_sum)(void* buffer, int64_t count, lockstep_mpi_type type, lockstep_mpi_request** request);
  int (*broadcast)(void* buffer, int64_t bytes, int32_t root, lockstep_mpi_request** request);
  int (*all_gather)(const void* from, void* to, int64_t bytes_each, lockstep_mpi_request** request);
  /* `from` holds size() parts of `count_each` elements; rank r gets the sum of everybody's r-th part. */
  int (*reduce_scatter_sum)(const void* from, void* to, int64_t count_each, lockstep_mpi_type type,
                            lockstep_mpi_request** request);
  /* bytes_out[r] go to rank r, bytes_in[r] come from it; parts lie one behind the other in rank order. */
  int (*all_to_all)(const void* from, const int64_t* bytes_out, void* to, const int64_t* bytes_in,
                    lockstep_mpi_request** request);
  int (*send)(const void* buffer, int64_t bytes, int32_t peer, int32_t tag, lockstep_mpi_request** request);
  int (*receive)(void* buffer, int64_t bytes, int32_t peer, int32_t tag, lockstep_mpi_request** request);
  int (*barrier)(lockstep_mpi_request** request);
  /* A barrier apart from the collectives: done when every rank has started its own. */
  int (*arrival)(lockstep_mpi_request** request);
  int (*test)(lockstep_mpi_request* request, int32_t* done);
  int (*wait)(lockstep_mpi_request* request);
  int (*finalize)(void);
  void (*abort)(int32_t exit_code);
  void (*explain)(int code, char* text, int32_t bytes);
  const char* (*library)(void); /* "Open MPI v4.1.4, ..." */
} lockstep_mpi;

/* The only exported symbol. */
const lockstep_mpi* lockstep_mpi_plugin(void);

}  // extern "C"
