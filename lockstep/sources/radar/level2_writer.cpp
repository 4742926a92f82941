// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/sources/radar/big_endian.h"
#include "lockstep/sources/radar/bzip2_door.h"
#include "lockstep/sources/radar/level2.h"

namespace lockstep::sources {
namespace {

constexpr size_t kEmptyFrames = 134, kFrameBytes = 2432, kRaysPerRecord = 120;
constexpr double kSecondsOfDay = 86400;

struct DayTime {
  uint32_t day, milliseconds;
};

DayTime day_time(double seconds) {
  const double day = std::floor(seconds / kSecondsOfDay);
  return {static_cast<uint32_t>(day) + 1, static_cast<uint32_t>(std::lround((seconds - day * kSecondsOfDay) * 1000))};
}

uint8_t raw_of(float dbz) {
  if (std::isnan(dbz)) return 1;
  if (dbz == kNoEcho) return 0;
  return static_cast<uint8_t>(std::clamp(std::lround(2 * dbz + 66), 2L, 255L));
}

uint8_t status_of(size_t sweep, size_t sweeps, int64_t ray, int64_t rays) {
  if (ray == 0) return sweep == 0 ? 3 : sweep + 1 == sweeps ? 5 : 0;
  if (ray + 1 == rays) return sweep + 1 == sweeps ? 4 : 2;
  return 1;
}

// A message 31 with its header; blocks stand behind five pointers.
std::string radial_message(const RadarVolume& volume, const PolarSweep& sweep, int64_t ray, uint8_t status,
                           uint16_t number) {
  constexpr size_t kBlocks = 4, kRvol = 68, kRelv = kRvol + 44, kRrad = kRelv + 12, kRef = kRrad + 20;
  const DayTime when = day_time(sweep.seconds + 0.05 * static_cast<double>(ray));
  BigEndianText body;
  body.text((volume.site + "    ").substr(0, 4));
  body.u32(when.milliseconds);
  body.u16(static_cast<uint16_t>(when.day));
  body.u16(static_cast<uint16_t>(ray + 1));
  body.f32(static_cast<float>(sweep.azimuths[static_cast<size_t>(ray)]));
  body.u16(0);                                                                    // not packed; spare
  body.u16(static_cast<uint16_t>(kRef + 28 + static_cast<size_t>(sweep.gates)));  // length
  body.u8(sweep.rays() > 400 ? 1 : 2);
  body.u8(status);
  body.u8(static_cast<uint8_t>(sweep.number));
  body.u8(1);
  body.f32(static_cast<float>(sweep.elevation));
  body.u16(0);
  body.u16(kBlocks);
  for (const size_t at : {kRvol, kRelv, kRrad, kRef}) body.u32(static_cast<uint32_t>(at));
  body.zeros(kRvol - body.size());
  body.text("RVOL");
  body.u16(44);
  body.u16(0x0100);
  body.f32(static_cast<float>(volume.latitude));
  body.f32(static_cast<float>(volume.longitude));
  body.u16(static_cast<uint16_t>(std::lround(volume.altitude)));
  body.u16(0);
  body.zeros(kRvol + 40 - body.size());
  body.u16(212);
  body.zeros(kRelv - body.size());
  body.text("RELV");
  body.u16(12);
  body.zeros(kRrad - body.size());
  body.text("RRAD");
  body.u16(20);
  body.u16(4600);
  body.zeros(kRef - body.size());
  body.text("DREF");
  body.u32(0);
  body.u16(static_cast<uint16_t>(sweep.gates));
  body.u16(static_cast<uint16_t>(std::lround(sweep.first_gate)));
  body.u16(static_cast<uint16_t>(std::lround(sweep.gate_spacing)));
  body.u16(0);
  body.u16(0);
  body.u8(0);
  body.u8(8);
  body.f32(2);
  body.f32(66);
  for (int64_t gate = 0; gate < sweep.gates; ++gate) body.u8(raw_of(sweep.at(ray, gate)));
  if (body.size() % 2 != 0) body.u8(0);
  BigEndianText message;
  message.zeros(12);
  message.u16(static_cast<uint16_t>((body.size() + 16) / 2));
  message.u8(0);
  message.u8(31);
  message.u16(number);
  message.u16(static_cast<uint16_t>(when.day));
  message.u32(when.milliseconds);
  message.u16(1);
  message.u16(1);
  message.text(body.take());
  return message.take();
}

void add_record(BigEndianText& file, const std::string& plain, bool last) {
  const std::string packed = bzip2(plain);
  const auto size = static_cast<int32_t>(packed.size());
  file.u32(static_cast<uint32_t>(last ? -size : size));
  file.text(packed);
}

}  // namespace

std::string write_level2(const RadarVolume& volume) {
  base::ensure(!volume.sweeps.empty() && volume.seconds >= 0, "a volume to be written has sweeps and a time");
  const DayTime when = day_time(volume.seconds);
  BigEndianText file;
  file.text("AR2V0006.001");
  file.u32(when.day);
  file.u32(when.milliseconds);
  file.text((volume.site + "    ").substr(0, 4));
  add_record(file, std::string(kEmptyFrames * kFrameBytes, '\0'), false);
  std::string record;
  size_t in_record = 0;
  uint16_t number = 0;
  for (size_t s = 0; s < volume.sweeps.size(); ++s) {
    const PolarSweep& sweep = volume.sweeps[s];
    for (int64_t ray = 0; ray < sweep.rays(); ++ray) {
      record += radial_message(volume, sweep, ray, status_of(s, volume.sweeps.size(), ray, sweep.rays()), ++number);
      const bool last = s + 1 == volume.sweeps.size() && ray + 1 == sweep.rays();
      if (++in_record < kRaysPerRecord && !last) continue;
      add_record(file, std::exchange(record, ""), last);
      in_record = 0;
    }
  }
  return file.take();
}

}  // namespace lockstep::sources
