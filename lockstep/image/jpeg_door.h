// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "lockstep/image/decode.h"

namespace lockstep::image {

// libjpeg-turbo stands behind these; decode.cpp is their only caller. They throw as decode.h says. Besides errors,
// libjpeg's warnings about damaged data are errors here: a half-grey image must not be trained on in silence.

class JpegFile;

enum class JpegEntropy { own, library };  // who reads the Huffman codes; the same pixels, the library's for comparison

// One file at a time: open() reads the header, read() a part. Keeps its tables from one file to the next.
class JpegReader {
 public:
  JpegReader();
  ~JpegReader();

  ImageInfo open(std::span<const std::byte> file);  // `file` must live until the last read()
  // Once per open(). In pixels as stored, before the orientation. `part.image` starts up to one block before the
  // request (part.x). Our own reading of the codes only where it has passed own_entropy_agrees() in this process; where
  // not, the library's, with a note on standard error, once.
  void read(const PartRequest& request, DecodedPart& part, JpegEntropy entropy = JpegEntropy::own);

  // In place of read(): all of it by the library alone, into one row. What a bench measures decoders against.
  void discard();

 private:
  std::unique_ptr<JpegFile> jpeg_;
};

// Decodes a small built-in image both ways: true when our reading of the codes is in use and gives the library's very
// pixels. False with a libjpeg that is laid out otherwise than the one this was built against. `spoil` is for tests: it
// stands for a library whose pixels differ.
bool own_entropy_agrees(void (*spoil)(DecodedPart& part) = nullptr);

std::string encode_jpeg_file(const Image& image, int quality);

std::string restart_jpeg_rows(std::span<const std::byte> file);

}  // namespace lockstep::image
