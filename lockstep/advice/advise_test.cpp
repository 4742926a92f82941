// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/advise.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::advice {
namespace {

TEST(AdviseTest, NamesTheNearestForAnUnknownAdvice) {
  const auto catalogue = catalogue::load_embedded();
  const auto calibration = forecast::load_calibration();
  try {
    advise("cpu-or-gpuu", {base::Arguments{}, catalogue, calibration});
    FAIL() << "an unknown advice was given";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    EXPECT_NE(error.fix().find("'cpu-or-gpu'"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::advice
