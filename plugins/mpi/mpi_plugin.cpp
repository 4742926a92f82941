// SPDX-License-Identifier: Apache-2.0
#include "mpi_plugin.h"

#define OMPI_SKIP_MPICXX 1  // the C++ bindings that Open MPI 4 still drags in
#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstring>

struct lockstep_mpi_request {
  MPI_Request request = MPI_REQUEST_NULL;
};

namespace {

MPI_Op bf16_sum = MPI_OP_NULL;

float widen(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

uint16_t narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);  // NaN stays NaN
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

void add_bf16(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  const auto* a = static_cast<const uint16_t*>(from);
  auto* b = static_cast<uint16_t*>(into);
  for (int i = 0; i < *count; ++i) b[i] = narrow(widen(a[i]) + widen(b[i]));
}

int init() {
  int provided = MPI_THREAD_SINGLE;
  if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided); code != MPI_SUCCESS) {
    return code;
  }
  if (provided < MPI_THREAD_MULTIPLE) return -1;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return MPI_Op_create(&add_bf16, 1, &bf16_sum);
}

int32_t rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

int32_t size() {
  int value = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

MPI_Datatype datatype(lockstep_mpi_type type) {
  switch (type) {
    case LOCKSTEP_MPI_F32:
      return MPI_FLOAT;
    case LOCKSTEP_MPI_F64:
      return MPI_DOUBLE;
    case LOCKSTEP_MPI_I32:
      return MPI_INT32_T;
    case LOCKSTEP_MPI_I64:
      return MPI_INT64_T;
    case LOCKSTEP_MPI_BF16:
      return MPI_UINT16_T;
  }
  return MPI_DATATYPE_NULL;
}

// Runs `start` on a fresh request and hands it out when the call succeeded.
template <class Start>
int begin(lockstep_mpi_request** out, Start start) {
  auto* made = new lockstep_mpi_request;
  const int code = start(&made->request);
  if (code == MPI_SUCCESS) {
    *out = made;
  } else {
    delete made;
  }
  return code;
}

int all_reduce_sum(void* buffer, int64_t count, lockstep_mpi_type type, lockstep_mpi_request** out) {
  if (count > INT_MAX) return MPI_ERR_COUNT;
  const MPI_Op op = type == LOCKSTEP_MPI_BF16 ? bf16_sum : MPI_SUM;
  return begin(out, [&](MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, buffer, static_cast<int>(count), datatype(type), op, MPI_COMM_WORLD, request);
  });
}

int broadcast(void* buffer, int64_t bytes, int32_t root, lockstep_mpi_request** out) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  return begin(out, [&](MPI_Request* request) {
    return MPI_Ibcast(buffer, static_cast<int>(bytes), MPI_BYTE, root, MPI_COMM_WORLD, request);
  });
}

int all_gather(const void* from, void* to, int64_t bytes, lockstep_mpi_request** out) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  const int count = static_cast<int>(bytes);
  return begin(out, [&](MPI_Request* request) {
    return MPI_Iallgather(from, count, MPI_BYTE, to, count, MPI_BYTE, MPI_COMM_WORLD, request);
  });
}

int barrier(lockstep_mpi_request** out) {
  return begin(out, [](MPI_Request* request) { return MPI_Ibarrier(MPI_COMM_WORLD, request); });
}

int test(lockstep_mpi_request* request, int32_t* done) {
  int flag = 0;
  const int code = MPI_Test(&request->request, &flag, MPI_STATUS_IGNORE);
  *done = flag;
  if (flag || code != MPI_SUCCESS) delete request;
  return code;
}

int wait(lockstep_mpi_request* request) {
  const int code = MPI_Wait(&request->request, MPI_STATUS_IGNORE);
  delete request;
  return code;
}

int finalize() {
  if (bf16_sum != MPI_OP_NULL) MPI_Op_free(&bf16_sum);
  return MPI_Finalize();
}

void abort_all(int32_t exit_code) {
  MPI_Abort(MPI_COMM_WORLD, exit_code);
}

void explain(int code, char* text, int32_t bytes) {
  char words[MPI_MAX_ERROR_STRING] = "the MPI library offers no MPI_THREAD_MULTIPLE";
  int length = 0;
  if (code != -1) MPI_Error_string(code, words, &length);
  std::snprintf(text, static_cast<size_t>(bytes), "%s", words);
}

const char* library() {
  static char words[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(words, &length);
  return words;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const lockstep_mpi* lockstep_mpi_plugin(void) {
  static const lockstep_mpi table = {LOCKSTEP_MPI_VERSION,
                                     init,
                                     rank,
                                     size,
                                     all_reduce_sum,
                                     broadcast,
                                     all_gather,
                                     barrier,
                                     test,
                                     wait,
                                     finalize,
                                     abort_all,
                                     explain,
                                     library};
  return &table;
}
