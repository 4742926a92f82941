// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/* The whole interface between Lockstep and what libtorch and CUDA tell about a real GPU: a versioned struct of C
 * functions. No torch, no CUDA and no Lockstep headers, so that programs without a GPU hold it too. Opened at run time,
 * after libtorch_cuda.so. Functions return 0, or -1 and `failure()` says why (of the calling thread). */

#define LOCKSTEP_CUDA_VERSION 1
#define LOCKSTEP_CUDA_ENTRY "lockstep_cuda_plugin"

extern "C" {

typedef struct lockstep_cuda_bytes {
  int64_t allocated; /* of blocks handed out, as rounded */
  int64_t active;    /* allocated, and blocks that wait for another stream */
  int64_t reserved;  /* of segments, taken from the driver */
  int64_t requested; /* as asked for */
} lockstep_cuda_bytes;

typedef struct lockstep_cuda_memory {
  lockstep_cuda_bytes now;
  lockstep_cuda_bytes peak; /* since the last reset */
  int64_t retries;          /* times the cache was given back because the GPU was full */
} lockstep_cuda_memory;

/* One act of the caching allocator. */
typedef enum lockstep_cuda_action {
  LOCKSTEP_CUDA_ALLOC = 0, /* bytes: as requested */
  LOCKSTEP_CUDA_FREE_REQUESTED = 1,
  LOCKSTEP_CUDA_FREE_COMPLETED = 2,
  LOCKSTEP_CUDA_SEGMENT_ALLOC = 3,
  LOCKSTEP_CUDA_SEGMENT_FREE = 4,
  LOCKSTEP_CUDA_SEGMENT_MAP = 5,
  LOCKSTEP_CUDA_SEGMENT_UNMAP = 6,
  LOCKSTEP_CUDA_SNAPSHOT = 7,
  LOCKSTEP_CUDA_OOM = 8,
  LOCKSTEP_CUDA_MARK = 100 /* history_mark; address: its tag */
} lockstep_cuda_action;

typedef struct lockstep_cuda_act {
  int32_t action;
  int32_t thread; /* 0: the first that was seen, 1: the next, ... */
  uint64_t address;
  int64_t bytes;
  uint64_t stream;
} lockstep_cuda_act;

typedef enum lockstep_cuda_work {
  LOCKSTEP_CUDA_KERNEL = 0,
  LOCKSTEP_CUDA_COPY = 1,
  LOCKSTEP_CUDA_SET = 2
} lockstep_cuda_work;

/* One piece of work that the GPU did. */
typedef struct lockstep_cuda_kernel {
  uint64_t tag; /* the innermost one pushed by the thread that launched it; 0: none */
  int64_t start_ns;
  int64_t end_ns;
  int64_t bytes; /* copies and sets */
  int32_t work;  /* lockstep_cuda_work */
  int32_t stream;
  const char* name; /* mangled; lives as long as the plug-in */
} lockstep_cuda_kernel;

typedef struct lockstep_cuda_event lockstep_cuda_event;

typedef struct lockstep_cuda {
  int32_t version;
  const char* (*failure)(void);
  int (*synchronize)(void);
  int (*memory_info)(int64_t* free_bytes, int64_t* total_bytes); /* of the current device, all processes */

  /* The caching allocator of `device`, which must be initialised. */
  int (*memory)(int32_t device, lockstep_cuda_memory* out);
  int (*reset_peaks)(int32_t device);
  int (*empty_cache)(void);

  /* Its history: `start` from now on (call it before the first allocation to have all), `mark` adds an act of the
   * caller's, `take` hands out what was gathered and forgets it; the array lives until the next call of start or take.
   */
  int (*history_start)(void);
  int (*history_stop)(void);
  int (*history_mark)(uint64_t tag);
  int (*history_take)(const lockstep_cuda_act** acts, int64_t* count);

  /* Times on the current stream. */
  int (*event_create)(lockstep_cuda_event** out);
  int (*event_record)(lockstep_cuda_event* event);
  int (*event_seconds)(lockstep_cuda_event* from, lockstep_cuda_event* to, double* out); /* both recorded and done */
  int (*event_destroy)(lockstep_cuda_event* event);

  /* What the GPU executes, from CUPTI: `start`, tag the launches of this thread with push and pop, `take` waits for
   * the GPU, ends the watch and hands the pieces out in order of their start; the array lives until the next call. */
  int (*kernels_start)(void);
  int (*kernels_push)(uint64_t tag);
  int (*kernels_pop)(void);
  int (*kernels_take)(const lockstep_cuda_kernel** kernels, int64_t* count);
} lockstep_cuda;

/* The only exported symbol. */
const lockstep_cuda* lockstep_cuda_plugin(void);

}  // extern "C"
