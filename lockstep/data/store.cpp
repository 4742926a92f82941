// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/store.h"

#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"

namespace lockstep::data {
namespace {

// One file a picture.
class FileStore final : public Store {
 public:
  explicit FileStore(const Collection& collection) : samples_(collection.samples) {}

  int64_t num_files() const override { return static_cast<int64_t>(samples_.size()); }
  std::string path(int64_t file) const override { return samples_.at(static_cast<size_t>(file)).path; }
  Location locate(int64_t id) const override { return {.file = id}; }
  std::string name(int64_t id) const override { return path(id); }
  std::optional<PictureFacts> facts(int64_t) const override { return std::nullopt; }
  std::span<const std::byte> read(int64_t id, std::vector<std::byte>& memory) const override {
    const std::string content = base::read_file(samples_.at(static_cast<size_t>(id)).path);
    memory.resize(content.size());
    std::memcpy(memory.data(), content.data(), content.size());
    return memory;
  }

 private:
  const std::vector<Sample>& samples_;
};

}  // namespace

void check_bytes(const Store& store, int64_t id, std::span<const std::byte> bytes) {
  const Location where = store.locate(id);
  if (!where.crc32c || base::crc32c(bytes) == *where.crc32c) return;
  throw base::Error(base::Blame::user,
                    base::text(store.name(id), ": the bytes have changed since they were written (CRC-32C)"),
                    "lockstep prep --verify names all such samples; copy or prepare the shard again");
}

std::unique_ptr<Store> open_store(const Collection& collection) {
  return std::make_unique<FileStore>(collection);
}

}  // namespace lockstep::data
