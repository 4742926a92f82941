// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/workstation.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::advice {
namespace {

using base::Blame;
using base::Error;
using base::text;

const std::vector<std::string> kKinds{"gpu", "cpu", "memory", "ssd", "hdd", "case", "psu", "motherboard"};

double size_of(const PricedPart& part) {
  return part.part.kind == "psu" ? part.part.power_w.value_or(0) : part.part.capacity_gb.value_or(0);
}

void add_up(Build& build) {
  build.price = build.gpu->price * static_cast<double>(build.gpus) + build.cpu->price;
  for (const auto* part : build.rest) build.price += part->price;
}

}  // namespace

std::string Build::name() const {
  return text(gpus > 1 ? text(gpus, " x ") : "", gpu->part.id, ", ", cpu->part.id);
}

PartList::PartList(std::vector<PricedPart> parts, const catalogue::Catalogue& catalogue, const std::string& list,
                   BuildRules rules)
    : parts_(std::move(parts)), catalogue_(catalogue), list_(list), rules_(rules) {
  std::set<std::string> lists;
  for (const auto& part : parts_) {
    if (part.part.list) lists.insert(*part.part.list);
    if (part.own && std::find(kKinds.begin(), kKinds.end(), part.part.kind) == kKinds.end()) {
      throw Error(Blame::user, text("part '", part.part.id, "': there is no kind '", part.part.kind, "'"),
                  base::did_you_mean(part.part.kind, kKinds));
    }
    if (part.part.gpu) (void)catalogue_.gpu(*part.part.gpu, text("part '", part.part.id, "'"));
    if (part.part.cpu) (void)catalogue_.cpu(*part.part.cpu, text("part '", part.part.id, "'"));
  }
  if (!list_.empty() && !lists.contains(list_)) {
    throw Error(Blame::user, text("--parts: no part stands in the list '", list_, "'"),
                base::did_you_mean(list_, {lists.begin(), lists.end()}));
  }
  for (const std::string& kind : kKinds) {
    if (!of_kind(kind).empty()) continue;
    throw Error(Blame::user, text("no part of kind '", kind, "' has a price: nothing can be built"),
                text("--prices FILE.csv with a line for one, or a row of that kind in "
                     "~/.config/lockstep/catalogue/parts.json"));
  }
}

bool PartList::offers(const PricedPart& part) const {
  if (part.own) return true;
  if (!list_.empty()) return part.part.list == list_;
  return !part.part.list || std::none_of(parts_.begin(), parts_.end(), [&](const PricedPart& other) {
    return other.part.kind == part.part.kind && !other.part.list;
  });
}

std::vector<const PricedPart*> PartList::of_kind(const std::string& kind) const {
  std::vector<const PricedPart*> found;
  for (const auto& part : parts_) {
    if (part.part.kind == kind && offers(part)) found.push_back(&part);
  }
  return found;
}

const PricedPart* PartList::cheapest(const std::string& kind, double least) const {
  const PricedPart* best = nullptr;
  for (const auto* part : of_kind(kind)) {
    if (size_of(*part) >= least && (!best || part->price < best->price)) best = part;
  }
  return best;
}

double PartList::watts_of(const Build& build) const {
  const double gpu = catalogue_.gpu(build.gpu->part.gpu.value_or("")).tdp_w.value_or(0);
  const double processor = catalogue_.cpu(build.cpu->part.cpu.value_or("")).tdp_w.value_or(0);
  return gpu * static_cast<double>(build.gpus) + processor + rules_.rest_watts;
}

int64_t PartList::slots_of(const Build& build) const {
  const double watts = catalogue_.gpu(build.gpu->part.gpu.value_or("")).tdp_w.value_or(0);
  const int64_t each = watts >= rules_.wide_gpu_watts ? 3 : watts >= rules_.two_slots_watts ? 2 : 1;
  return each * build.gpus;
}

std::vector<Build> PartList::builds(const BuildNeeds& needs) const {
  std::vector<Build> all;
  const auto enough = [&](const char* kind, double least) {
    if (const auto* part = cheapest(kind, least)) return part;
    const auto parts = of_kind(kind);
    return *std::max_element(parts.begin(), parts.end(),
                             [](const auto* a, const auto* b) { return size_of(*a) < size_of(*b); });
  };
  for (const auto* gpu : of_kind("gpu")) {
    for (const auto* cpu : of_kind("cpu")) {
      for (int64_t gpus = 1; gpus <= rules_.most_gpus; ++gpus) {
        Build build{gpu, cpu, gpus};
        build.watts = watts_of(build);
        build.slots = slots_of(build);
        const auto* psu = cheapest("psu", build.watts * rules_.psu_margin);
        if (!psu || build.slots > rules_.slots) break;
        build.rest = {enough("memory", needs.memory_gb),
                      enough("ssd", needs.disk_gb),
                      cheapest("hdd", 0),
                      cheapest("case", 0),
                      psu,
                      cheapest("motherboard", 0)};
        add_up(build);
        all.push_back(std::move(build));
      }
    }
  }
  return all;
}

Build PartList::listed(const std::vector<std::string>& words) const {
  Build build;
  build.gpus = 0;
  std::vector<std::string> ids;
  for (const auto& part : parts_) ids.push_back(part.part.id);
  for (const auto& word : words) {
    const size_t star = word.find('*');
    const std::string id = word.substr(0, star);
    int64_t count = 1;
    if (star != std::string::npos) {
      const char* end = word.data() + word.size();
      const auto [stop, error] = std::from_chars(word.data() + star + 1, end, count);
      if (error != std::errc() || stop != end || count < 1) {
        throw Error(Blame::user, text("--against: '", word, "' is not a number of parts"), "for example rtx3090*2");
      }
    }
    const auto found =
        std::find_if(parts_.begin(), parts_.end(), [&](const PricedPart& part) { return part.part.id == id; });
    if (found == parts_.end()) {
      throw Error(Blame::user, text("--against: there is no part '", id, "' with a price"),
                  base::did_you_mean(id, ids));
    }
    if (found->part.kind == "gpu" && (!build.gpu || build.gpu == &*found)) {
      build.gpu = &*found;
      build.gpus += count;
    } else if (found->part.kind == "cpu" && !build.cpu && count == 1) {
      build.cpu = &*found;
    } else {
      for (int64_t i = 0; i < count; ++i) build.rest.push_back(&*found);
    }
  }
  const bool mixed = std::any_of(build.rest.begin(), build.rest.end(), [](const PricedPart* part) {
    return part->part.kind == "gpu" || part->part.kind == "cpu";
  });
  if (!build.gpu || !build.cpu || mixed) {
    throw Error(Blame::user, "--against needs one kind of GPU and one processor",
                "for example rtx3090*2,ryzen-9-5900x");
  }
  build.watts = watts_of(build);
  build.slots = slots_of(build);
  add_up(build);
  return build;
}

}  // namespace lockstep::advice
