// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/loader_state.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::run {
namespace {

TEST(LoaderStateTest, ComesBackFromItsJson) {
  const LoaderState state{.seed = 7, .epoch = 3, .consumed = 11};
  EXPECT_EQ(LoaderState::from_json(state.to_json()), state);
  EXPECT_THROW(LoaderState::from_json(base::Json::object()), base::Error);
}

}  // namespace
}  // namespace lockstep::run
