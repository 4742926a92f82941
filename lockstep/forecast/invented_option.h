// SPDX-License-Identifier: Apache-2.0
// For tests: machine options with the invented GPU, and a workload of the invented step.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockstep/base/text.h"
#include "lockstep/forecast/invented_device.h"
#include "lockstep/forecast/invented_step.h"
#include "lockstep/forecast/option.h"

namespace lockstep::forecast {

class InventedOption : public testing::Test {
 protected:
  static MachineOption machine_option_of(int64_t gpus, double memory_gb) {
    MachineOption machine_option;
    machine_option.name = "invented";
    machine_option.gpu = invented_gpu();
    machine_option.gpu->vendor = "NVIDIA";
    machine_option.gpu->memory_gb = memory_gb;
    machine_option.gpu->compute_capability = "8.0";
    machine_option.gpu->pcie = "PCIe 4.0 x16";
    machine_option.gpus = gpus;
    return machine_option;
  }
  ForecastContext context() { return {catalogue_, calibration_, {}, workload_, recordings_}; }
  static std::string reasons(const Option& option) { return base::join(option.why, "; "); }

  catalogue::Catalogue catalogue_ = catalogue::load_embedded();
  Calibration calibration_{{invented_device()}};
  Recordings recordings_{invented_step};
  Workload workload_{.work = {.samples = 6400, .global_batch = 64, .span = {.epochs = 10}}, .levers = {"fp32", {}, 0}};
};

}  // namespace lockstep::forecast
