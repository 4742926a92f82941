// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/forecast/calibration.h"

namespace lockstep::forecast {

// A device for tests whose times can be worked out by hand: 100 TFLOP/s in every type, 1 TB/s; large copies run at 80 %
// of the bandwidth, small ones at 10 %, convolutions at 50 % of the operations.
inline Rates invented_rates() {
  Rates rates{.id = "invented", .kind = DeviceKind::gpu, .bandwidth = 1e12};
  rates.flops.fill(100e12);
  return rates;
}

inline catalogue::Gpu invented_gpu() {
  catalogue::Gpu gpu;
  gpu.id = "invented";
  gpu.bandwidth_gbs = 1000;
  gpu.tflops_fp32 = gpu.tflops_fp16 = gpu.tflops_bf16 = gpu.tflops_tf32 = 100;
  gpu.nvlink_gbs = 200;
  gpu.tdp_w = 400;
  gpu.memory_gb = 16;
  return gpu;
}

inline DeviceCalibration invented_device() {
  DeviceCalibration device;
  device.rates = invented_rates();
  device.machine = "invented for tests";
  device.command = "none";
  device.date = "2026-11-15";
  device.floor = 2e-6;
  device.host = {.operation = 10e-6, .view = 1e-6, .kernel = 2e-6, .step = 0};
  device.power = {.memory_bound = 0.5, .compute_bound = 1};
  device.measured = {0.95, 1.05};
  device.carried_over = {0.8, 1.25};
  device.samples = {
      {{.name = "aten::add", .bytes = 1e9}, 1e-3 / 0.8, Layout::channels_last, {}},
      {{.name = "aten::add", .bytes = 1e6}, 1e-6 / 0.1, Layout::channels_last, {}},
      {{.name = "aten::convolution",
        .kind = OperatorClass::convolution,
        .flops = 1e11,
        .bytes = 1e8,
        .shape = {64, 64, 56, 56, 64, 3, 3, 1, 1}},
       2e-3,
       Layout::channels_last,
       {}},
      {{.name = "aten::add", .bytes = 1e7}, 1e-5 / 0.35, Layout::channels_last, {}},
      {{.name = "aten::add", .bytes = 1e8}, 1e-4 / 0.7, Layout::channels_last, {}},
  };
  return device;
}

}  // namespace lockstep::forecast
