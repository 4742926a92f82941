// SPDX-License-Identifier: Apache-2.0
#include "lockstep/loader/pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/table.h"
#include "lockstep/base/text.h"

namespace lockstep::loader {
namespace {

constexpr double kWorthSaying = 0.05;

std::string percent(double share) {
  return base::text(std::lround(100 * share), " %");
}

}  // namespace

PipelineSeconds PipelineSeconds::operator-(const PipelineSeconds& earlier) const {
  return {read - earlier.read, decode - earlier.decode, augment - earlier.augment, copy - earlier.copy,
          samples - earlier.samples};
}

PipelineSeconds& PipelineSeconds::operator+=(const PipelineSeconds& more) {
  read += more.read;
  decode += more.decode;
  augment += more.augment;
  copy += more.copy;
  samples += more.samples;
  return *this;
}

std::optional<Bottleneck> find_bottleneck(const Pace& pace) {
  if (pace.pipeline.samples == 0 || pace.waited < kWorthSaying * pace.seconds) return std::nullopt;
  const std::pair<const char*, double> pipeline[] = {{"read", pace.pipeline.read},
                                                     {"decode", pace.pipeline.decode},
                                                     {"augment", pace.pipeline.augment},
                                                     {"copy", pace.pipeline.copy}};
  const auto* slowest = std::max_element(std::begin(pipeline), std::end(pipeline),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
  Bottleneck found;
  found.from_shards = pace.from_shards;
  found.pipeline_stage = slowest->first;
  found.pipeline_stage_share = slowest->second / std::max(pace.pipeline.sum(), 1e-9);
  found.waited_share = pace.waited / pace.seconds;
  // The steps alone would take seconds - waited; in that time the loader's work must be done.
  found.threads_needed = pace.pipeline.sum() / std::max(pace.seconds - pace.waited, 1e-3 * pace.seconds);
  found.more_cores = std::max<int64_t>(0, std::llround(std::ceil(found.threads_needed)) - pace.threads);
  return found;
}

base::Json Bottleneck::to_json() const {
  base::Json fields = base::Json::object();
  fields["stage"] = pipeline_stage;
  fields["stage_share"] = pipeline_stage_share;
  fields["waited_share"] = waited_share;
  fields["threads_needed"] = threads_needed;
  fields["more_cores"] = more_cores;
  return fields;
}

std::string Bottleneck::to_text() const {
  const std::string help =
      pipeline_stage == "read" ? from_shards ? "a copy on this node (data.stage) or data.order=windows would help"
                                             : "a faster disk or shards (lockstep prep) would help"
      : more_cores > 0         ? base::text(base::fixed(threads_needed, 1), " threads would keep up: ", more_cores,
                                    more_cores == 1 ? " more core" : " more cores", " for data.threads would help")
                               : "its threads would do, if the steps left a core to them (fewer training.threads)";
  return base::text("the loader holds the steps back: they waited ", percent(waited_share), " of the time; ",
                    pipeline_stage, " takes ", percent(pipeline_stage_share), " of its work; ", help);
}

}  // namespace lockstep::loader
