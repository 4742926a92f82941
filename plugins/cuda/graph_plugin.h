// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/* What Lockstep asks of libtorch's CUDA graphs, as a versioned struct of functions, opened at run time after
 * libtorch_cuda.so, which it is linked to: lockstep_cuda is not. */

#define LOCKSTEP_GRAPH_VERSION 2
#define LOCKSTEP_GRAPH_ENTRY "lockstep_graph_plugin"

extern "C" {

typedef struct lockstep_graph_capture lockstep_graph_capture;

typedef struct lockstep_graph {
  int32_t version;
  const char* (*failure)(void); /* of the calling thread */

  /* Gives what the allocator keeps unused back to the GPU. */
  int (*make_room)(void);
  /* Captures what is queued on the current stream from now on, whatever the thread. What is allocated meanwhile stays
   * in a pool of the capture's own until it is destroyed. */
  int (*begin)(lockstep_graph_capture** out);
  int (*end)(lockstep_graph_capture* capture);
  /* Runs it on the current stream; random numbers go on from the generator's present state. */
  int (*replay)(lockstep_graph_capture* capture);
  void (*destroy)(lockstep_graph_capture* capture); /* also one that was not ended */
} lockstep_graph;

/* The only exported symbol. */
const lockstep_graph* lockstep_graph_plugin(void);

}  // extern "C"
