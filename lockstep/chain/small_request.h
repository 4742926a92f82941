// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/chain/prepare.h"

namespace lockstep::chain {

// For tests: the catalogue of this program, and a job on one of its machines that nothing is wrong with.
inline const catalogue::Catalogue& shipped_catalogue() {
  static const catalogue::Catalogue catalogue = catalogue::load_embedded();
  return catalogue;
}

inline SubmitRequest request_on(const std::string& machine, const std::vector<std::string>& sites = {}) {
  SubmitRequest request;
  request.job = spec::parse_job(base::parse_json(R"({"name": "pets", "data": {"train": "synthetic", "samples": 100},
    "model": {"name": "resnet18", "classes": 4}, "training": {"global_batch": 40, "epochs": 1}})",
                                                 "job.json"));
  request.machine = find_machine(machine, sites, shipped_catalogue());
  request.run = "/no/such/run/pets";
  request.folder = "/no/such/run";
  request.program = "/opt/lockstep";
  request.plan = false;
  request.dry_run = true;
  return request;
}

}  // namespace lockstep::chain
