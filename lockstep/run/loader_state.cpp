// SPDX-License-Identifier: Apache-2.0
#include "lockstep/run/loader_state.h"

namespace lockstep::run {

base::Json LoaderState::to_json() const {
  base::Json all = base::Json::object();
  all["seed"] = seed;
  all["epoch"] = epoch;
  all["consumed"] = consumed;
  return all;
}

LoaderState LoaderState::from_json(const base::Json& value) {
  return {value.at("seed").as_int(), value.at("epoch").as_int(), value.at("consumed").as_int()};
}

}  // namespace lockstep::run
