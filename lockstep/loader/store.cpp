// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/store.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/loader/stage.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/sources/file_tree.h"

namespace lockstep::loader {
namespace {

using Parts = std::vector<std::span<const std::byte>>;

// One file an image, and one a member. Where there are members, what is read ends with the sizes of all its parts.
class FileStore final : public Store {
 public:
  FileStore(const Collection& collection, std::vector<std::string> members)
      : samples_(collection.samples), members_(std::move(members)) {}

  std::string path(int64_t file) const override { return samples_.at(static_cast<size_t>(file)).path; }
  Location locate(int64_t id) const override { return {.file = id}; }
  std::string name(int64_t id) const override { return path(id); }
  std::span<const std::byte> read(int64_t id, std::vector<std::byte>& memory) const override {
    const base::Path image = samples_.at(static_cast<size_t>(id)).path;
    std::string content = sources::read_plain_file(image.string());
    std::vector<uint64_t> sizes{content.size()};
    for (const auto& extension : members_) {
      const std::string member = sources::read_plain_file(base::Path(image).replace_extension(extension).string());
      sizes.push_back(member.size());
      content += member;
    }
    if (!members_.empty()) content.append(reinterpret_cast<const char*>(sizes.data()), sizes.size() * sizeof sizes[0]);
    memory.resize(content.size());
    std::memcpy(memory.data(), content.data(), content.size());
    return memory;
  }
  Parts split(int64_t, std::span<const std::byte> bytes) const override {
    if (members_.empty()) return {bytes};
    std::vector<uint64_t> sizes(members_.size() + 1);
    const auto trailer = bytes.last(sizes.size() * sizeof sizes[0]);
    std::memcpy(sizes.data(), trailer.data(), trailer.size());
    Parts parts;
    for (const uint64_t size : sizes) {
      parts.push_back(bytes.first(size));
      bytes = bytes.subspan(size);
    }
    return parts;
  }

 private:
  const std::vector<Sample>& samples_;
  const std::vector<std::string> members_;
};

// Sentences of a list, which was read when it was opened.
class SentenceStore final : public Store {
 public:
  explicit SentenceStore(const Collection& collection)
      : samples_(collection.samples), sentences_(collection.sentences) {}

  // The list: a place is "list.txt:12".
  std::string path(int64_t file) const override { return name(file).substr(0, name(file).rfind(':')); }
  Location locate(int64_t id) const override { return {.file = id}; }
  std::string name(int64_t id) const override { return samples_.at(static_cast<size_t>(id)).path; }
  std::span<const std::byte> read(int64_t id, std::vector<std::byte>& memory) const override {
    const auto bytes = std::as_bytes(std::span(sentences_->at(static_cast<size_t>(id))));
    memory.assign(bytes.begin(), bytes.end());
    return memory;
  }
  Parts split(int64_t, std::span<const std::byte> bytes) const override { return {bytes}; }

 private:
  const std::vector<Sample>& samples_;
  const std::shared_ptr<const std::vector<std::string>> sentences_;
};

// A shell's limit is often 1,024 where the system allows more.
bool raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return errno = EMFILE, false;
  limit.rlim_cur = std::min(limit.rlim_max, 2 * limit.rlim_cur);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 || (errno = EMFILE, false);
}

// Shards stay open from the beginning to the end: reading an image is one pread.
class ShardStore final : public Store {
 public:
  ShardStore(const Collection& collection, std::vector<std::string> members)
      : collection_(collection), shards_(collection.shards), members_(std::move(members)) {
    for (int64_t i = 0; i < shards_->num_shards(); ++i) {
      int descriptor = -1;
      do descriptor = ::open(shards_->tar_path(i).c_str(), O_RDONLY | O_CLOEXEC);
      while (descriptor < 0 && errno == EMFILE && raise_file_limit());
      if (descriptor < 0) {
        const int code = errno;
        close_all();
        errno = code;
        base::throw_errno(base::text("cannot open ", path(i)),
                          code == EMFILE ? "raise the limit: ulimit -n 65536" : "");
      }
      descriptors_.push_back(descriptor);
    }
  }
  ~ShardStore() override { close_all(); }
  ShardStore(const ShardStore&) = delete;
  ShardStore& operator=(const ShardStore&) = delete;

  std::string path(int64_t file) const override { return shards_->tar_path(file).string(); }

  // Members lie side by side: one read takes all, and what lies between them.
  Location locate(int64_t id) const override {
    Location where{.file = shards_->position_of(id).shard};
    int64_t end = 0;
    each_part(id, [&](const shards::IndexedMember& member) {
      where.offset = end == 0 ? member.offset : std::min(where.offset, member.offset);
      end = std::max(end, member.offset + member.size);
    });
    where.size = end - where.offset;
    return where;
  }

  Parts split(int64_t id, std::span<const std::byte> bytes) const override {
    if (members_.empty()) return {bytes};
    const int64_t begin = locate(id).offset;
    Parts parts;
    each_part(id, [&](const shards::IndexedMember& member) {
      parts.push_back(bytes.subspan(static_cast<size_t>(member.offset - begin), static_cast<size_t>(member.size)));
    });
    return parts;
  }

  void check(int64_t id, std::span<const std::byte> bytes) const override {
    const Parts parts = split(id, bytes);
    size_t next = 0;
    each_part(id, [&](const shards::IndexedMember& member) {
      if (base::crc32c(parts[next++]) == member.crc32c) return;
      throw base::Error(
          base::Blame::user, base::text(name(id), ": the bytes have changed since they were written (CRC-32C)"),
          "lockstep prep --verify DIR names all such samples; copy the shard again, or make it again: prep --repair");
    });
  }

  std::string name(int64_t id) const override { return collection_.name_of(id); }

  int descriptor(int64_t file) const override {
    const int copy = collection_.staging ? collection_.staging->descriptor(file) : -1;
    return copy >= 0 ? copy : descriptors_[static_cast<size_t>(file)];
  }
  bool forget_copy(int64_t file) const override { return collection_.staging && collection_.staging->forget(file); }
  int64_t largest_image() const override {
    int64_t most = 0;
    for (int64_t i = 0; i < shards_->num_shards(); ++i) most = std::max(most, shards_->index(i).largest_image());
    return most;
  }
  int64_t largest_file() const override {
    int64_t most = 0;
    const bool holds_more = !members_.empty() || !collection_.main_member.empty();
    for (int64_t id = 0; holds_more && id < shards_->size(); ++id) most = std::max(most, locate(id).size);
    for (int64_t i = 0; i < shards_->num_shards(); ++i) most = std::max(most, shards_->index(i).largest_file());
    return most;
  }

  std::span<const std::byte> read(int64_t id, std::vector<std::byte>& memory) const override {
    const Location where = locate(id);
    try {
      read_now(id, where, memory);
    } catch (const base::Error&) {
      if (!forget_copy(where.file)) throw;
      read_now(id, where, memory);
    }
    return memory;
  }

 private:
  void read_now(int64_t id, const Location& where, std::vector<std::byte>& memory) const {
    memory.resize(static_cast<size_t>(where.size));
    const int descriptor_now = descriptor(where.file);
    size_t done = 0;
    while (done < memory.size()) {
      const ssize_t got = ::pread(descriptor_now, memory.data() + done, memory.size() - done,
                                  where.offset + static_cast<int64_t>(done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) base::throw_errno(base::text("cannot read ", name(id)));
      if (got == 0) {
        throw base::Error(base::Blame::user, base::text(name(id), ": the shard ends within it"),
                          "copy the shard again");
      }
      done += static_cast<size_t>(got);
    }
    check(id, memory);
  }

  // The image or what stands in its place, then the members that were asked for.
  template <class Use>
  void each_part(int64_t id, const Use& use) const {
    const auto [shard, sample] = shards_->position_of(id);
    const shards::ShardIndex& index = shards_->index(shard);
    const std::string& main = collection_.main_member;
    use(main.empty() ? index.member(sample, index.sample(sample).image->member) : index.find(sample, main).value());
    for (const auto& extension : members_) {
      const auto member = index.find(sample, extension);
      if (!member) {
        throw base::Error(base::Blame::user, base::text(name(id), ": the sample has no member '", extension, "'"),
                          "lockstep prep writes what the source knows besides the image into it");
      }
      use(*member);
    }
  }

  void close_all() {
    for (const int descriptor : descriptors_) ::close(descriptor);
  }

  const Collection& collection_;
  const std::shared_ptr<const shards::ShardSet> shards_;
  const std::vector<std::string> members_;
  std::vector<int> descriptors_;
};

}  // namespace

std::unique_ptr<Store> open_store(const Collection& collection, std::vector<std::string> members) {
  if (collection.sentences) return std::make_unique<SentenceStore>(collection);
  if (collection.shards) return std::make_unique<ShardStore>(collection, std::move(members));
  return std::make_unique<FileStore>(collection, std::move(members));
}

}  // namespace lockstep::loader
