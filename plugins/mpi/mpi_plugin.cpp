// SPDX-License-Identifier: Apache-2.0
#include "mpi_plugin.h"

#define OMPI_SKIP_MPICXX 1  // the C++ bindings that Open MPI 4 still drags in
#include <mpi.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <vector>

struct lockstep_mpi_request {
  MPI_Request request = MPI_REQUEST_NULL;
  std::vector<int> lengths;  // counts and displacements that MPI reads until the request is done
};

namespace {

MPI_Op bf16_sum = MPI_OP_NULL;
MPI_Comm arrivals = MPI_COMM_NULL;

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
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &arrivals); code != MPI_SUCCESS) return code;
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
  const int code = start(*made);
  if (code == MPI_SUCCESS) {
    *out = made;
  } else {
    delete made;
  }
  return code;
}

// So many bytes as a count and a type: MPI counts in int, so beyond 2 GiB one element is the whole block.
class Block {
 public:
  explicit Block(int64_t bytes) {
    if (bytes <= INT_MAX) {
      count_ = static_cast<int>(bytes);
      return;
    }
    constexpr int64_t kPiece = int64_t{1} << 30;
    int lengths[2] = {static_cast<int>(bytes / kPiece), static_cast<int>(bytes % kPiece)};
    MPI_Aint positions[2] = {0, static_cast<MPI_Aint>(bytes / kPiece * kPiece)};
    MPI_Type_contiguous(static_cast<int>(kPiece), MPI_BYTE, &piece_);
    MPI_Datatype types[2] = {piece_, MPI_BYTE};
    MPI_Type_create_struct(2, lengths, positions, types, &type_);
    MPI_Type_commit(&type_);
  }
  ~Block() {  // MPI keeps it for as long as a request needs it
    if (piece_ == MPI_DATATYPE_NULL) return;
    MPI_Type_free(&type_);
    MPI_Type_free(&piece_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Datatype piece_ = MPI_DATATYPE_NULL;
};

MPI_Op sum_of(lockstep_mpi_type type) {
  return type == LOCKSTEP_MPI_BF16 ? bf16_sum : MPI_SUM;
}

int all_reduce_sum(void* buffer, int64_t count, lockstep_mpi_type type, lockstep_mpi_request** out) {
  if (count > INT_MAX) return MPI_ERR_COUNT;
  return begin(out, [&](lockstep_mpi_request& made) {
    return MPI_Iallreduce(MPI_IN_PLACE, buffer, static_cast<int>(count), datatype(type), sum_of(type), MPI_COMM_WORLD,
                          &made.request);
  });
}

int broadcast(void* buffer, int64_t bytes, int32_t root, lockstep_mpi_request** out) {
  const Block block(bytes);
  return begin(out, [&](lockstep_mpi_request& made) {
    return MPI_Ibcast(buffer, block.count(), block.type(), root, MPI_COMM_WORLD, &made.request);
  });
}

int all_gather(const void* from, void* to, int64_t bytes, lockstep_mpi_request** out) {
  const Block block(bytes);
  return begin(out, [&](lockstep_mpi_request& made) {
    return MPI_Iallgather(from, block.count(), block.type(), to, block.count(), block.type(), MPI_COMM_WORLD,
                          &made.request);
  });
}

int reduce_scatter_sum(const void* from, void* to, int64_t count_each, lockstep_mpi_type type,
                       lockstep_mpi_request** out) {
  if (count_each > INT_MAX) return MPI_ERR_COUNT;
  return begin(out, [&](lockstep_mpi_request& made) {
    return MPI_Ireduce_scatter_block(from, to, static_cast<int>(count_each), datatype(type), sum_of(type),
                                     MPI_COMM_WORLD, &made.request);
  });
}

int all_to_all(const void* from, const int64_t* bytes_out, void* to, const int64_t* bytes_in,
               lockstep_mpi_request** out) {
  const int ranks = size();
  int64_t sent = 0, received = 0;
  for (int r = 0; r < ranks; ++r) {
    sent += bytes_out[r];
    received += bytes_in[r];
  }
  if (std::max(sent, received) > INT_MAX) return MPI_ERR_COUNT;
  return begin(out, [&](lockstep_mpi_request& made) {
    made.lengths.resize(4 * static_cast<size_t>(ranks));
    int* counts_out = made.lengths.data();
    int* offsets_out = counts_out + ranks;
    int* counts_in = offsets_out + ranks;
    int* offsets_in = counts_in + ranks;
    for (int r = 0, away = 0, home = 0; r < ranks; ++r) {
      counts_out[r] = static_cast<int>(bytes_out[r]);
      counts_in[r] = static_cast<int>(bytes_in[r]);
      offsets_out[r] = away;
      offsets_in[r] = home;
      away += counts_out[r];
      home += counts_in[r];
    }
    return MPI_Ialltoallv(from, counts_out, offsets_out, MPI_BYTE, to, counts_in, offsets_in, MPI_BYTE, MPI_COMM_WORLD,
                          &made.request);
  });
}

int send(const void* buffer, int64_t bytes, int32_t peer, int32_t tag, lockstep_mpi_request** out) {
  const Block block(bytes);
  return begin(out, [&](lockstep_mpi_request& made) {
    return MPI_Isend(buffer, block.count(), block.type(), peer, tag, MPI_COMM_WORLD, &made.request);
  });
}

int receive(void* buffer, int64_t bytes, int32_t peer, int32_t tag, lockstep_mpi_request** out) {
  const Block block(bytes);
  return begin(out, [&](lockstep_mpi_request& made) {
    return MPI_Irecv(buffer, block.count(), block.type(), peer, tag, MPI_COMM_WORLD, &made.request);
  });
}

int barrier(lockstep_mpi_request** out) {
  return begin(out, [](lockstep_mpi_request& made) { return MPI_Ibarrier(MPI_COMM_WORLD, &made.request); });
}

int arrival(lockstep_mpi_request** out) {
  return begin(out, [](lockstep_mpi_request& made) { return MPI_Ibarrier(arrivals, &made.request); });
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
  if (arrivals != MPI_COMM_NULL) MPI_Comm_free(&arrivals);
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
                                     reduce_scatter_sum,
                                     all_to_all,
                                     send,
                                     receive,
                                     barrier,
                                     arrival,
                                     test,
                                     wait,
                                     finalize,
                                     abort_all,
                                     explain,
                                     library};
  return &table;
}
