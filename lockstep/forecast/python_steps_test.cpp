// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/python_steps.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/invented_step.h"
#include "lockstep/forecast/time.h"

namespace lockstep::forecast {
namespace {

TEST(PythonStepsTest, AnOperatorHasItsOwnFactorOrItsClasss) {
  const PythonSteps all = parse_python_steps(base::parse_json(R"({"host": 1.2, "steps": 8, "low": 0.8, "high": 1.3,
    "classes": [{"class": "batch_norm", "layout": "contiguous", "factor": 2}],
    "names": {"aten::upsample_bilinear2d_backward": 40}})",
                                                              "p.json"));
  EXPECT_DOUBLE_EQ(
      all.factor({.name = "aten::native_batch_norm", .kind = OperatorClass::batch_norm}, Layout::contiguous), 2);
  EXPECT_DOUBLE_EQ(
      all.factor({.name = "aten::native_batch_norm", .kind = OperatorClass::batch_norm}, Layout::channels_last), 1);
  EXPECT_DOUBLE_EQ(all.factor({.name = "aten::upsample_bilinear2d_backward"}, Layout::contiguous), 40);
}

TEST(PythonStepsTest, RefusesAFactorThatIsNotAboveZero) {
  EXPECT_THROW(parse_python_steps(base::parse_json(
                   R"({"host": 0, "steps": 8, "low": 1, "high": 1, "classes": [], "names": {}})", "p.json")),
               base::Error);
}

TEST(PythonStepsTest, ARecordedStepOfPythonIsForetoldByThem) {
  Recording recording = invented_step({.precision = "fp32", .micro_batch = 32});
  EXPECT_FALSE(is_python_step(recording));
  const auto catalogue = catalogue::load_embedded();
  const auto calibration = load_calibration();
  const double ours = forecast_time(recording, catalogue.gpu("h200"), calibration).host;
  recording.source = "torch 2.11.0";
  EXPECT_TRUE(is_python_step(recording));
  const TimeForecast python = forecast_time(recording, catalogue.gpu("h200"), calibration);
  EXPECT_NEAR(python.host, ours * load_python_steps().host, 1e-9);
  EXPECT_EQ(python.step.basis, Basis::carried_over) << "nobody measured this script";
}

}  // namespace
}  // namespace lockstep::forecast
