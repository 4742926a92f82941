// SPDX-License-Identifier: Apache-2.0
#include "lockstep/image/jpeg_door.h"

#include <dlfcn.h>

#include <csetjmp>
#include <cstdio>  // jpeglib.h wants FILE and size_t declared before it
#include <cstdlib>
#include <cstring>
#include <memory>

#include <jpeglib.h>

#include <jerror.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/exif.h"
#include "lockstep/image/jpeg_scan.h"

namespace lockstep::image {
struct JpegErrors {
  jpeg_error_mgr table;  // first: libjpeg hands out a pointer to it
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

namespace {

constexpr int kMaxScans = 200;  // a progressive file of 1 kB can ask for thousands of passes over a large image

// More than the mean of a block is decoded. libjpeg-turbo has the member's name by the API that it was built to follow:
// 6.2 on Debian, 8 on Ubuntu.
bool has_alternating_terms(const jpeg_component_info& component) {
#if JPEG_LIB_VERSION >= 70
  return component.DCT_h_scaled_size > 1;
#else
  return component.DCT_scaled_size > 1;
#endif
}

[[noreturn]] void jump_out(j_common_ptr info) {
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->table.format_message(info, errors->message);
  longjmp(errors->jump, 1);
}

// Trailing or extra bytes and odd colour markers leave every pixel right; all other warnings mean lost data.
bool is_harmless(int warning) {
  return warning == JWRN_EXTRANEOUS_DATA || warning == JWRN_ADOBE_XFORM || warning == JWRN_TOO_MUCH_DATA ||
         warning == JWRN_JFIF_MAJOR || warning == JWRN_BOGUS_ICC;
}

void hear_message(j_common_ptr info, int level) {
  if (level < 0 && !is_harmless(info->err->msg_code)) jump_out(info);
}

void limit_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMaxScans);
  longjmp(errors->jump, 1);
}

void set_up(JpegErrors& errors) {
  jpeg_std_error(&errors.table);
  errors.table.error_exit = jump_out;
  errors.table.emit_message = hear_message;
  errors.table.output_message = [](j_common_ptr) {};
}

// libjpeg reports by longjmp. `step` must therefore own nothing that has a destructor.
template <class Step>
void guarded(JpegErrors& errors, const Step& step) {
  if (setjmp(errors.jump) != 0) {  // NOLINT(cert-err52-cpp): the library's only way out
    throw base::Error(base::Blame::user, base::text("damaged JPEG: ", errors.message), "replace or remove the file");
  }
  step();
}

struct JpegOutput {
  unsigned char* bytes = nullptr;
  unsigned long size = 0;              // NOLINT(google-runtime-int): libjpeg's own type
  ~JpegOutput() { std::free(bytes); }  // NOLINT: libjpeg allocates it with malloc
};

// The beginning of libjpeg's own jpeg_entropy_decoder, which its headers do not show: these two members stand first in
// every release of libjpeg-turbo. Only `decode_mcu` is exchanged, for a faster one that reads no more than is needed;
// by the library's convention it discards an MCU whose blocks are null.
struct EntropyDecoder {
  void (*start_pass)(j_decompress_ptr);
  boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW*);
};
#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER < 4000000
constexpr bool kIsKnownLibrary = true;
#else
constexpr bool kIsKnownLibrary = false;
#endif

// The library that is loaded may be another than the one of the headers: what stands where its decoder should be must
// be a function of it.
bool is_in_library(boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW*)) {
  Dl_info there{}, library{};
  return dladdr(reinterpret_cast<void*>(decode_mcu), &there) != 0 &&
         dladdr(reinterpret_cast<void*>(&jpeg_read_scanlines), &library) != 0 && there.dli_fbase == library.dli_fbase;
}

}  // namespace

class JpegFile {
 public:
  JpegFile() { set_up(errors_); }
  ~JpegFile() { close(); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  // A fresh object for each file: tables of an earlier one must not serve a file without any.
  void open(std::span<const std::byte> file) {
    close();
    file_ = file;
    info_ = {};
    info_.err = &errors_.table;
    guarded(errors_, [this] { jpeg_create_decompress(&info_); });
    is_open_ = true;
    progress_.progress_monitor = limit_scans;
    info_.progress = &progress_;
    info_.client_data = this;
    read_header();
  }

  // A part may end before the damage: the end must be there, whatever part is asked for. The bytes FF D9 stand
  // nowhere in the compressed data but at its end.
  void check_end() const {
    const size_t header = file_.size() - info_.src->bytes_in_buffer;
    for (size_t i = file_.size(); i >= header + 2; --i) {
      if (file_[i - 1] == std::byte{0xD9} && file_[i - 2] == std::byte{0xFF}) return;
    }
    throw base::Error(base::Blame::user, "truncated JPEG: its end is missing", "fetch the file again or remove it");
  }

  int orientation() const {
    for (auto* marker = info_.marker_list; marker; marker = marker->next) {
      const auto* data = reinterpret_cast<const std::byte*>(marker->data);
      const int found = exif_orientation({data, marker->data_length});
      if (found != 1) return found;
    }
    return 1;
  }

  bool has_four_inks() const { return info_.num_components == 4; }

  // The coefficients as they are, sequential, with a restart marker after each row of MCUs.
  void rewrite(jpeg_compress_struct& to, JpegOutput& output) {
    to.err = &errors_.table;  // what goes wrong in writing jumps out of here as well
    guarded(errors_, [this, &to, &output] {
      jpeg_create_compress(&to);
      jpeg_mem_dest(&to, &output.bytes, &output.size);
      jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&info_);
      jpeg_copy_critical_parameters(&info_, &to);
      to.optimize_coding = TRUE;  // pays for the markers: the file is as large as before, or smaller
      to.restart_in_rows = 1;
      jpeg_write_coefficients(&to, coefficients);
      jpeg_finish_compress(&to);
      jpeg_finish_decompress(&info_);
    });
  }

  bool may_take_over() const { return is_in_library(reinterpret_cast<EntropyDecoder*>(info_.entropy)->decode_mcu); }
  bool has_read_scan() const { return reads_scan_ && next_mcu_ > 0; }
  int64_t width() const { return info_.image_width; }
  int64_t height() const { return info_.image_height; }

  void start(int64_t denominator, JpegEntropy entropy) {
    inks_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    guarded(errors_, [this, denominator] {
      info_.scale_num = 1;
      info_.scale_denom = static_cast<unsigned>(denominator);
      info_.out_color_space = inks_ ? JCS_CMYK : JCS_RGB;
      jpeg_start_decompress(&info_);
    });
    reads_scan_ = kIsKnownLibrary && entropy == JpegEntropy::own && !info_.progressive_mode && !info_.arith_code &&
                  info_.data_precision == 8 && info_.comps_in_scan == info_.num_components;
    next_mcu_ = 0;
  }

  void read(const PartRequest& request, DecodedPart& part) {
    const int64_t full_width = info_.output_width, full_height = info_.output_height;
    const int64_t d = request.denominator;
    // Chroma is interpolated from its neighbours: two pixels more on each side make the asked ones exact.
    constexpr int64_t kMargin = 2;
    const int64_t left = std::max<int64_t>(request.x / d - kMargin, 0);
    const int64_t right = std::min((request.x + request.width + d - 1) / d + kMargin, full_width);
    const int64_t top = std::max<int64_t>(request.y / d - kMargin, 0);
    const int64_t bottom = std::min((request.y + request.height + d - 1) / d + kMargin, full_height);
    JDIMENSION x = static_cast<JDIMENSION>(left), width = static_cast<JDIMENSION>(right - left);
    JDIMENSION* const x_at = &x;
    JDIMENSION* const width_at = &width;
    if (right - left < full_width) {
      guarded(errors_, [this, x_at, width_at] { jpeg_crop_scanline(&info_, x_at, width_at); });
    }
    part.x = x;
    part.y = top;
    part.denominator = d;
    part.image.width = info_.output_width;
    part.image.height = bottom - top;
    part.image.pixels.resize(static_cast<size_t>(part.image.width * part.image.height * 3));
    if (inks_) row_.resize(static_cast<size_t>(info_.output_width) * 4);
    if (reads_scan_) take_over_scan(x, info_.output_width, d);
    guarded(errors_, [this, &part, top] { read_rows(part.image, static_cast<JDIMENSION>(top)); });
  }

  void discard_rows() {
    row_.resize(static_cast<size_t>(info_.output_width) * 4);
    guarded(errors_, [this] {
      JSAMPROW row = row_.data();
      while (info_.output_scanline < info_.output_height) jpeg_read_scanlines(&info_, &row, 1);
      jpeg_finish_decompress(&info_);
    });
  }

 private:
  void close() {
    if (is_open_) jpeg_destroy_decompress(&info_);
    is_open_ = false;
  }

  void read_header() {
    guarded(errors_, [this] {
      jpeg_save_markers(&info_, JPEG_APP0 + 1, 0xFFFF);
      jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
      jpeg_read_header(&info_, TRUE);
    });
    const int64_t pixels = int64_t{info_.image_width} * info_.image_height;
    if (pixels <= kMaxPixels) return;
    throw base::Error(base::Blame::user,
                      base::text("an image of ", info_.image_width, " x ", info_.image_height, " is refused"),
                      base::text("shrink it to at most ", kMaxPixels, " pixels"));
  }

  void take_over_scan(int64_t x, int64_t width, int64_t denominator) {
    ScanReader::Layout layout;
    layout.restart_interval = info_.restart_interval;
    layout.num_positions = info_.blocks_in_MCU;
    for (int i = 0; i < info_.blocks_in_MCU; ++i) {
      const int component = info_.MCU_membership[i];
      const jpeg_component_info& from = *info_.cur_comp_info[component];
      layout.positions[static_cast<size_t>(i)] = {component, from.dc_tbl_no, from.ac_tbl_no,
                                                  has_alternating_terms(from)};
      scan_.set_dc_code(from.dc_tbl_no, code_of(*info_.dc_huff_tbl_ptrs[from.dc_tbl_no]));
      scan_.set_ac_code(from.ac_tbl_no, code_of(*info_.ac_huff_tbl_ptrs[from.ac_tbl_no]));
    }
    const int64_t mcu_width = info_.comps_in_scan == 1 ? 8 : 8 * info_.max_h_samp_factor;
    first_column_ = x * denominator / mcu_width;
    end_column_ = ((x + width) * denominator + mcu_width - 1) / mcu_width;
    scan_.start(file_.last(info_.src->bytes_in_buffer), layout);
    reinterpret_cast<EntropyDecoder*>(info_.entropy)->decode_mcu = decode_mcu;
  }

  static HuffmanCode code_of(const JHUFF_TBL& table) {
    HuffmanCode code;
    std::copy(std::begin(table.bits) + 1, std::end(table.bits), code.num_codes.begin() + 1);
    std::copy(std::begin(table.huffval), std::end(table.huffval), code.symbols.begin());
    return code;
  }

  static boolean decode_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
    auto* self = static_cast<JpegFile*>(info->client_data);
    const int64_t index = self->next_mcu_++;
    const int64_t column = index % info->MCUs_per_row;
    if (!blocks || column < self->first_column_ || column >= self->end_column_) return TRUE;
    if (self->scan_.read(index, blocks)) return TRUE;
    std::snprintf(self->errors_.message, sizeof self->errors_.message, "Corrupt JPEG data: bad code or early end");
    longjmp(self->errors_.jump, 1);
  }

  void read_rows(Image& image, JDIMENSION top) {
    if (top > 0) jpeg_skip_scanlines(&info_, top);
    for (int64_t y = 0; y < image.height; ++y) {
      JSAMPROW row = inks_ ? row_.data() : image.row(y);
      while (jpeg_read_scanlines(&info_, &row, 1) == 0) {
      }
      if (inks_) inks_to_rgb(image.row(y), image.width);
    }
    if (info_.output_scanline == info_.output_height && !reads_scan_) jpeg_finish_decompress(&info_);
  }

  // Adobe's files hold 255 - ink; plain ones hold the ink. Rounded as image libraries do: a * b / 255, exactly.
  void inks_to_rgb(uint8_t* rgb, int64_t width) const {
    const uint8_t* ink = row_.data();
    const uint8_t turn = info_.saw_Adobe_marker ? 0xFF : 0;
    for (int64_t i = 0; i < width; ++i, ink += 4) {
      const unsigned light = 255u - (ink[3] ^ turn);
      for (int c = 0; c < 3; ++c) {
        const unsigned product = static_cast<unsigned>(ink[c] ^ turn) * light + 128;
        *rgb++ = static_cast<uint8_t>(light - ((product + (product >> 8)) >> 8));
      }
    }
  }

  std::span<const std::byte> file_;
  JpegErrors errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  bool is_open_ = false;
  bool inks_ = false;
  bool reads_scan_ = false;
  std::vector<uint8_t> row_;  // four bytes a pixel
  ScanReader scan_;
  int64_t next_mcu_ = 0;
  int64_t first_column_ = 0;  // of the MCUs that reach the part
  int64_t end_column_ = 0;
};

JpegReader::JpegReader() : jpeg_(std::make_unique<JpegFile>()) {}
JpegReader::~JpegReader() = default;

ImageInfo JpegReader::open(std::span<const std::byte> file) {
  jpeg_->open(file);
  ImageInfo info{ImageFormat::jpeg, jpeg_->width(), jpeg_->height(), jpeg_->orientation()};
  if (info.orientation >= 5) std::swap(info.width, info.height);
  return info;
}

bool own_entropy_agrees(void (*spoil)(DecodedPart& part)) {
  Image image(61, 43);  // no whole number of MCUs, in either direction
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i % 251 / 2 + i % 97);
  try {
    const std::string file = encode_jpeg_file(image, 85);
    DecodedPart parts[2];
    const auto reader = std::make_unique<JpegFile>();  // its tables alone are larger than a small stack
    for (const JpegEntropy entropy : {JpegEntropy::own, JpegEntropy::library}) {
      DecodedPart& part = parts[entropy == JpegEntropy::own ? 0 : 1];
      reader->open(std::as_bytes(std::span(file.data(), file.size())));
      reader->start(1, entropy);
      if (!reader->may_take_over()) return false;
      reader->read({.x = 9, .y = 5, .width = 40, .height = 30}, part);
      if (entropy == JpegEntropy::own && !reader->has_read_scan()) return false;
    }
    if (spoil) spoil(parts[0]);
    return parts[0].x == parts[1].x && parts[0].y == parts[1].y && parts[0].image == parts[1].image;
  } catch (const base::Error&) {
    return false;  // the library has read something else than we took over
  }
}

namespace {

bool may_use_own_entropy() {
  if (!kIsKnownLibrary || own_entropy_agrees()) return kIsKnownLibrary;
  std::fputs(
      "note: the libjpeg-turbo that is loaded here differs from the one of the build: it decodes alone, at about two "
      "thirds of the speed\n",
      stderr);
  return false;
}

}  // namespace

void JpegReader::read(const PartRequest& request, DecodedPart& part, JpegEntropy entropy) {
  static const bool own = may_use_own_entropy();
  if (!own) entropy = JpegEntropy::library;
  jpeg_->check_end();
  jpeg_->start(request.denominator, entropy);
  jpeg_->read(request, part);
}

void JpegReader::discard() {
  jpeg_->start(1, JpegEntropy::library);
  jpeg_->discard_rows();
}

std::string encode_jpeg_file(const Image& image, int quality) {
  JpegErrors errors{};
  set_up(errors);
  jpeg_compress_struct info{};
  info.err = &errors.table;
  JpegOutput output;
  const auto destroy = [](jpeg_compress_struct* all) { jpeg_destroy_compress(all); };
  const std::unique_ptr<jpeg_compress_struct, decltype(destroy)> owner(&info, destroy);
  guarded(errors, [&] {
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &output.bytes, &output.size);
    info.image_width = static_cast<JDIMENSION>(image.width);
    info.image_height = static_cast<JDIMENSION>(image.height);
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    for (int64_t y = 0; y < image.height; ++y) {
      JSAMPROW row = const_cast<uint8_t*>(image.row(y));
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
  });
  return {reinterpret_cast<const char*>(output.bytes), output.size};
}

std::string restart_jpeg_rows(std::span<const std::byte> file) {
  const auto reader = std::make_unique<JpegFile>();  // its tables are larger than a small stack
  reader->open(file);
  reader->check_end();
  if (reader->has_four_inks() || reader->orientation() != 1) {
    return {reinterpret_cast<const char*>(file.data()), file.size()};
  }
  jpeg_compress_struct info{};
  JpegOutput output;
  const auto destroy = [](jpeg_compress_struct* all) { jpeg_destroy_compress(all); };
  const std::unique_ptr<jpeg_compress_struct, decltype(destroy)> owner(&info, destroy);
  reader->rewrite(info, output);
  return {reinterpret_cast<const char*>(output.bytes), output.size};
}

}  // namespace lockstep::image
