// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/bzip2_door.h"

#include <bzlib.h>

#include <algorithm>
#include <new>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::sources {
namespace {

class Unpacker {
 public:
  Unpacker() {
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }
  ~Unpacker() { BZ2_bzDecompressEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  bz_stream& stream() { return stream_; }

 private:
  bz_stream stream_{};
};

}  // namespace

std::string bunzip2(std::span<const std::byte> file, size_t max_bytes, const std::string& source) {
  constexpr size_t kPiece = size_t{1} << 18, kMostInput = size_t{1} << 30;
  const auto fail = [&](const std::string& why) {
    throw base::Error(base::Blame::user, base::text(source, ": ", why), "fetch the file again");
  };
  if (file.size() > kMostInput) fail("more than 1 GiB in one bzip2 stream");
  Unpacker unpacker;
  bz_stream& stream = unpacker.stream();
  stream.next_in = const_cast<char*>(reinterpret_cast<const char*>(file.data()));  // libbz2 only reads it
  stream.avail_in = static_cast<unsigned>(file.size());
  std::string all;
  for (int code = BZ_OK; code != BZ_STREAM_END;) {
    const size_t before = all.size();
    all.resize(before + kPiece);
    stream.next_out = all.data() + before;
    stream.avail_out = kPiece;
    code = BZ2_bzDecompress(&stream);
    all.resize(before + kPiece - stream.avail_out);
    if (code != BZ_OK && code != BZ_STREAM_END) fail("damaged bzip2 data");
    if (all.size() > max_bytes) fail(base::text("it unpacks to more than ", max_bytes, " bytes"));
    if (code == BZ_OK && stream.avail_in == 0 && all.size() == before) fail("the bzip2 data are cut off");
  }
  return all;
}

std::string bzip2(std::string_view bytes) {
  auto size = static_cast<unsigned>(bytes.size() + bytes.size() / 100 + 600);  // as the manual asks for
  std::string packed(size, '\0');
  const int code = BZ2_bzBuffToBuffCompress(packed.data(), &size, const_cast<char*>(bytes.data()),
                                            static_cast<unsigned>(bytes.size()), 9, 0, 0);
  base::ensure(code == BZ_OK, "bzip2 packs what has room");
  packed.resize(size);
  return packed;
}

}  // namespace lockstep::sources
