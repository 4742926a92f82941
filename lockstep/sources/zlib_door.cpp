// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/zlib_door.h"

#include <algorithm>

#include <zlib.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

constexpr size_t kPiece = size_t{1} << 20;
constexpr int kGzipOnly = 15 + 16;  // window bits, and that a gzip header must stand in front

class Inflater {
 public:
  explicit Inflater(const std::string& source) : source_(source) {
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  std::string unpack(std::span<const std::byte> file, size_t max_bytes) {
    std::string all;
    do {  // gzip files may stand behind each other
      file = unpack_member(file, max_bytes, all);
      inflateReset(&stream_);
    } while (!file.empty());
    return all;
  }

  std::string unpack_start(std::span<const std::byte> file, size_t bytes) {
    std::string start(bytes, '\0');
    stream_.next_out = reinterpret_cast<Bytef*>(start.data());
    stream_.avail_out = static_cast<uInt>(bytes);
    int code = Z_OK;
    while (code != Z_STREAM_END && stream_.avail_out > 0) {
      give(file);
      code = inflate(&stream_, Z_NO_FLUSH);
      check(code, file);
      file = file.last(file.size() - std::min(file.size(), kPiece) + stream_.avail_in);
    }
    start.resize(bytes - stream_.avail_out);
    return start;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw base::Error(base::Blame::user, base::text(source_, ": ", why), "fetch the file again");
  }

  // As much of the file as zlib counts at once.
  void give(std::span<const std::byte> file) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(file.data()));  // zlib only reads it
    stream_.avail_in = static_cast<uInt>(std::min(file.size(), kPiece));
  }
  void check(int code, std::span<const std::byte> file) const {
    if (code == Z_BUF_ERROR && file.empty()) fail("the gzip file is cut off");
    if (code == Z_OK || code == Z_STREAM_END) return;
    fail(base::text("damaged gzip file: ", stream_.msg ? stream_.msg : "no gzip header"));
  }

  // Appends what the first member holds; returns what stands behind it.
  std::span<const std::byte> unpack_member(std::span<const std::byte> file, size_t max_bytes, std::string& all) {
    std::string piece(kPiece, '\0');
    int code = Z_OK;
    while (code != Z_STREAM_END) {
      give(file);
      stream_.next_out = reinterpret_cast<Bytef*>(piece.data());
      stream_.avail_out = static_cast<uInt>(piece.size());
      code = inflate(&stream_, Z_NO_FLUSH);
      check(code, file);
      file = file.last(file.size() - std::min(file.size(), kPiece) + stream_.avail_in);
      all.append(piece, 0, piece.size() - stream_.avail_out);
      if (all.size() > max_bytes) fail(base::text("it unpacks to more than ", max_bytes, " bytes"));
    }
    return file;
  }

  const std::string& source_;
  z_stream stream_{};
};

}  // namespace

std::string gunzip(std::span<const std::byte> file, size_t max_bytes, const std::string& source) {
  return Inflater(source).unpack(file, max_bytes);
}

std::string gunzip_start(std::span<const std::byte> file, size_t bytes, const std::string& source) {
  return Inflater(source).unpack_start(file, bytes);
}

}  // namespace lockstep::sources
