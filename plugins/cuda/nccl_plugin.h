// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/* What Lockstep asks of NCCL: libtorch's own ProcessGroupNCCL, as a versioned struct of functions, opened at run time
 * after libtorch_cuda.so. A plug-in of its own: the headers of c10d's NCCL need those of NCCL, cuBLAS, cuSPARSE and
 * cuSOLVER, which a CPU build does not have. */

#define LOCKSTEP_NCCL_VERSION 1
#define LOCKSTEP_NCCL_ENTRY "lockstep_nccl_plugin"

namespace c10d {
class Store;
class Backend;
}  // namespace c10d

extern "C" {

typedef struct lockstep_nccl {
  int32_t version;
  /* Rank `rank` of `size` that meet in `store` (borrowed). The backend comes with one reference that is the caller's;
   * null, and failure() says why (of the calling thread). Ranks that do not come within the time end the process. */
  c10d::Backend* (*make)(c10d::Store* store, int32_t rank, int32_t size, double timeout_seconds);
  const char* (*failure)(void);
  const char* (*library)(void); /* "NCCL 2.28.9" */
} lockstep_nccl;

/* The only exported symbol. */
const lockstep_nccl* lockstep_nccl_plugin(void);

}  // extern "C"
