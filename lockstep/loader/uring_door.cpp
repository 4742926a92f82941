// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/uring_door.h"

#include <liburing.h>

#include "lockstep/base/error.h"

namespace lockstep::loader {
namespace {

class Uring final : public ReadRing {
 public:
  static std::unique_ptr<ReadRing> make(int depth) {
    auto made = std::make_unique<Uring>();
    if (io_uring_queue_init(static_cast<unsigned>(depth), &made->ring_, 0) != 0) return nullptr;
    made->is_open_ = true;
    io_uring_probe* const probe =
        io_uring_get_probe_ring(&made->ring_);  // kernels before 5.6 have rings without this read
    const bool reads = probe && io_uring_opcode_supported(probe, IORING_OP_READ);
    io_uring_free_probe(probe);
    if (!reads) return nullptr;
    return made;
  }
  Uring() = default;
  ~Uring() override {
    if (is_open_) io_uring_queue_exit(&ring_);
  }
  Uring(const Uring&) = delete;
  Uring& operator=(const Uring&) = delete;

  void run_some() override {
    if (num_under_way_ == 0) return;
    io_uring_submit_and_wait(&ring_, 1);
    io_uring_cqe* done = nullptr;
    while (io_uring_peek_cqe(&ring_, &done) == 0) {
      auto& read = *static_cast<Read*>(io_uring_cqe_get_data(done));
      read.result = done->res;
      io_uring_cqe_seen(&ring_, done);
      --num_under_way_;
      read.waiting.resume();
    }
  }
  int64_t num_under_way() const override { return num_under_way_; }
  const char* name() const override { return "io_uring"; }

 protected:
  bool try_now(Read&) override { return false; }
  void submit(Read& read) override {
    io_uring_sqe* entry = io_uring_get_sqe(&ring_);
    if (!entry) {  // the queue is full of what the kernel has not seen yet
      io_uring_submit(&ring_);
      entry = io_uring_get_sqe(&ring_);
    }
    base::ensure(entry != nullptr, "a submitted queue has room");
    io_uring_prep_read(entry, read.file, read.into.data(), static_cast<unsigned>(read.into.size()),
                       static_cast<uint64_t>(read.offset));
    io_uring_sqe_set_data(entry, &read);
    ++num_under_way_;
  }

 private:
  io_uring ring_{};
  bool is_open_ = false;
  int64_t num_under_way_ = 0;
};

}  // namespace

std::unique_ptr<ReadRing> make_uring(int depth) {
  return Uring::make(depth);
}

}  // namespace lockstep::loader
