// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/advice/prices.h"
#include "lockstep/catalogue/catalogue.h"

namespace lockstep::advice {

// What no catalogue says about putting a workstation together. Printed with the advice.
struct BuildRules {
  int64_t most_gpus = 4;
  int64_t slots = 8;            // of a case and board
  double wide_gpu_watts = 330;  // from here on a GPU takes three slots, from `two_slots` on two
  double two_slots_watts = 100;
  double rest_watts = 100;  // board, memory, disks, fans
  double psu_margin = 1.1;  // power supply over the sum of what it feeds
};

// What the jobs ask of the parts beside GPUs and processor.
struct BuildNeeds {
  double memory_gb = 0;
  double disk_gb = 0;
};

// A whole machine. Pointers are into the part list it was built from.
struct Build {
  const PricedPart* gpu = nullptr;
  const PricedPart* cpu = nullptr;
  int64_t gpus = 1;
  std::vector<const PricedPart*> rest = {};  // memory, ssd, hdd, case, psu, motherboard
  double price = 0;
  double watts = 0;  // everything at its limit
  int64_t slots = 0;

  std::string name() const;  // "2 x rtx3090, threadripper-3970x"
};

class PartList {
 public:
  // Machines are built of the current parts, and of others where those lack a kind; with `list`, of that list's. The
  // user's own always count. User error when a kind of part has no priced member (nothing can be built), when no part
  // stands in the list, when a GPU or processor is not in the catalogue, when a part of the user's is of no known kind.
  PartList(std::vector<PricedPart> parts, const catalogue::Catalogue& catalogue, const std::string& list = "",
           BuildRules rules = {});

  // Every number of every GPU with every processor that slots and some power supply allow; the rest the cheapest that
  // is enough. What a need cannot be met with at all takes the largest part there is.
  std::vector<Build> builds(const BuildNeeds& needs) const;
  // "rtx3090*2,threadripper-3970x,ram-128,...": a list of one's own. User error: unknown part, not one kind of GPU and
  // one processor.
  Build listed(const std::vector<std::string>& words) const;

  const BuildRules& rules() const { return rules_; }

 private:
  bool offers(const PricedPart& part) const;
  std::vector<const PricedPart*> of_kind(const std::string& kind) const;  // that machines are built of
  const PricedPart* cheapest(const std::string& kind, double least) const;
  double watts_of(const Build& build) const;
  int64_t slots_of(const Build& build) const;

  std::vector<PricedPart> parts_;
  const catalogue::Catalogue& catalogue_;
  std::string list_;
  BuildRules rules_;
};

}  // namespace lockstep::advice
