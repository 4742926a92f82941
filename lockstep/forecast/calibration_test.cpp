// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/calibration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/invented_device.h"

namespace lockstep::forecast {
namespace {

TEST(CalibrationTest, GivesASampleBackOnItsOwnDevice) {
  const Calibration calibration({invented_device()});
  for (const auto& sample : invented_device().samples) {
    EXPECT_NEAR(calibration.seconds(sample.op, invented_rates()), sample.seconds, 0.02 * sample.seconds)
        << sample.op.name;
  }
}

TEST(CalibrationTest, KeepsEveryEfficiencyAboveZeroAndAtMostOne) {
  const Calibration calibration({invented_device()});
  for (double bytes = 1; bytes < 1e13; bytes *= 7) {
    for (const auto kind : {OperatorClass::elementwise, OperatorClass::matmul, OperatorClass::softmax}) {
      const Operator op{.kind = kind, .flops = bytes * 3, .bytes = bytes, .shape = {1, 64, 64, 64}};
      EXPECT_GT(calibration.efficiency(op, invented_rates()), 0);
      EXPECT_LE(calibration.efficiency(op, invented_rates()), 1);
    }
  }
}

TEST(CalibrationTest, ALargerOperatorNeverTakesLessTime) {
  const Calibration calibration({invented_device()});
  double before = 0;
  for (double bytes = 1e3; bytes < 1e12; bytes *= 1.3) {
    const double now = calibration.seconds({.name = "aten::add", .bytes = bytes}, invented_rates());
    EXPECT_GE(now, before) << bytes;
    before = now;
  }
}

TEST(CalibrationTest, NoKernelIsShorterThanTheFloor) {
  const Calibration calibration({invented_device()});
  EXPECT_DOUBLE_EQ(calibration.seconds({.name = "aten::add", .bytes = 4, .launches = 2}, invented_rates()), 4e-6);
}

TEST(CalibrationTest, ViewsAndHostWorkTakeNoDeviceTime) {
  const Calibration calibration({invented_device()});
  EXPECT_EQ(calibration.seconds({.kind = OperatorClass::view, .bytes = 1e9}, invented_rates()), 0);
  EXPECT_EQ(calibration.seconds({.bytes = 1e9, .launches = 0}, invented_rates()), 0);
}

TEST(CalibrationTest, AVariantTakesTheSharesOfItsOwnChip) {
  DeviceCalibration other = invented_device();
  other.rates.id = "other";
  GpuFamilies families;
  families.families = {{.name = "Hopper", .capabilities = {"9.0"}, .factors = {2, 2, 2}}};
  const Calibration calibration({other, invented_device()}, families);
  Rates rates = invented_rates();
  rates.id = "invented-nvl";
  rates.capability = "9.0";
  EXPECT_FALSE(calibration.variant(rates));
  EXPECT_EQ(calibration.carry_factor(rates, Arithmetic::half), 2);
  rates.variant_of = "invented";
  EXPECT_TRUE(calibration.variant(rates));
  EXPECT_EQ(calibration.basis(rates).rates.id, "invented");
  EXPECT_EQ(calibration.carry_factor(rates, Arithmetic::half), 1);
  EXPECT_FALSE(calibration.measured(rates));
  EXPECT_FALSE(calibration.variant(invented_rates()));  // measured itself
}

TEST(CalibrationTest, AFasterDeviceIsFasterByItsRates) {
  const Calibration calibration({invented_device()});
  Rates twice = invented_rates();
  twice.id = "twice";
  twice.bandwidth *= 2;
  const Operator large{.name = "aten::add", .bytes = 1e10};
  EXPECT_NEAR(calibration.seconds(large, invented_rates()) / calibration.seconds(large, twice), 2, 0.05);
  EXPECT_TRUE(calibration.measured(invented_rates()));
  EXPECT_FALSE(calibration.measured(twice));
}

TEST(CalibrationTest, PrefersSamplesOfTheLayoutAskedFor) {
  DeviceCalibration device = invented_device();
  Sample slow = device.samples[2];
  ASSERT_EQ(slow.op.kind, OperatorClass::convolution);
  slow.layout = Layout::contiguous;
  slow.seconds *= 2;
  device.samples.push_back(slow);
  const Calibration calibration({device});
  EXPECT_NEAR(
      calibration.seconds(slow.op, device.rates, Layout::contiguous) / calibration.seconds(slow.op, device.rates), 2,
      0.02);
}

TEST(CalibrationTest, LeavesOutWhatOnlyOneModelHas) {
  DeviceCalibration device = invented_device();
  device.samples[0].models = {"resnet50"};
  device.samples[1].models = {"resnet50", "resnet18"};
  const Calibration without = Calibration({device}).without_model("resnet50");
  EXPECT_EQ(without.devices()[0].samples.size(), device.samples.size() - 1);
}

TEST(CalibrationTest, TextReadsBackAsItself) {
  const DeviceCalibration device = invented_device();
  EXPECT_EQ(parse_calibration(base::parse_json(to_text(device), "invented.json")), device);
}

TEST(CalibrationTest, NamesThePlaceOfAWrongValue) {
  std::string words = to_text(invented_device());
  const size_t at = words.find("\"elementwise\"");
  words.replace(at, 13, "\"elementwize\"");
  try {
    parse_calibration(base::parse_json(words, "mine.json"));
    FAIL() << "accepted an unknown class";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(std::string(error.what()).find("mine.json:"), std::string::npos) << error.what();
    EXPECT_NE(error.fix().find("elementwise"), std::string::npos) << error.fix();
  }
}

TEST(CalibrationTest, RefusesARateOfNothing) {
  EXPECT_THROW(Calibration({}), base::Error);
  DeviceCalibration empty = invented_device();
  empty.samples.clear();
  EXPECT_THROW(Calibration({empty}), base::Error);
  EXPECT_THROW(parse_calibration(base::parse_json(to_text(empty), "empty.json")), base::Error);
  Rates cpu = invented_rates();
  cpu.kind = DeviceKind::cpu;
  cpu.id = "another";
  EXPECT_THROW(Calibration({invented_device()}).basis(cpu), base::Error);
}

TEST(CalibrationTest, TheEmbeddedOnesServeEveryClassOnEveryDeviceOfTheCatalogue) {
  const Calibration calibration = load_calibration();
  for (const auto& gpu : catalogue::load_embedded().gpus) {
    if (!gpu.bandwidth_gbs || !gpu.tflops_fp32 || !gpu.tflops_fp16) continue;
    const Rates rates = rates_of(gpu);
    for (size_t kind = 0; kind < choices_of(OperatorClass{}).size(); ++kind) {
      const Operator op{.kind = static_cast<OperatorClass>(kind), .flops = 1e9, .bytes = 1e8, .shape = {}};
      EXPECT_GT(calibration.efficiency(op, rates), 0) << gpu.id;
      EXPECT_LE(calibration.efficiency(op, rates), 1) << gpu.id;
    }
  }
}

// Factors of families carry the H200's times over: with a file of an A100 beside one of the H200 it was the A100's
// times that they were put on.
TEST(CalibrationTest, TheUsersOwnDoNotChangeWhatOthersAreCarriedOverFrom) {
  const base::TemporaryFolder folder;
  const base::Path documents = folder.path() / "lockstep/calibration";
  std::filesystem::create_directories(documents);
  for (const char* id : {"a100-80", "h200"}) {
    DeviceCalibration own = invented_device();
    own.rates.id = id;
    base::write_file(documents / base::text(id, ".json"), to_text(own));
  }
  ::setenv("XDG_CONFIG_HOME", folder.path().c_str(), 1);
  const Calibration calibration = load_calibration();
  ::unsetenv("XDG_CONFIG_HOME");
  const auto catalogue = catalogue::load_embedded();
  EXPECT_EQ(calibration.basis(rates_of(catalogue.gpu("v100-16"))).rates.id, "h200");
  EXPECT_EQ(calibration.basis(rates_of(catalogue.gpu("h200"))).file, (documents / "h200.json").string());
  EXPECT_TRUE(calibration.measured(rates_of(catalogue.gpu("a100-80"))));
}

// The sums of FastBox's loss were once foretold with the efficiency of a sum of two values: 5 ms each, of 3 us.
TEST(CalibrationTest, ASmallOperatorTakesNotLongerThanLatency) {
  const Calibration calibration = load_calibration();
  const auto catalogue = catalogue::load_embedded();
  const Rates h200 = rates_of(catalogue.gpu("h200", "test"));
  for (const double bytes : {12., 1e3, 28080., 46800., 112320.}) {
    const double seconds = calibration.seconds(
        {.name = "aten::sum", .kind = OperatorClass::reduction, .bytes = bytes, .shape = {5, 468, 3}}, h200);
    EXPECT_LT(seconds, 2e-5) << bytes;
    EXPECT_GT(seconds, 5e-7) << bytes;
  }
}

}  // namespace
}  // namespace lockstep::forecast
