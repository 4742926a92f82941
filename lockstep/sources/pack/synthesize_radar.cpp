// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/synthesize_radar.h"

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/site/cores.h"
#include "lockstep/sources/pack/drawn_set.h"
#include "lockstep/sources/pack/folder_state.h"
#include "lockstep/sources/pack/ordered_work.h"
#include "lockstep/sources/radar/level2.h"
#include "lockstep/sources/radar/odim.h"
#include "lockstep/sources/radar/rain_world.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

struct DrawnVolume {
  std::string name, file;
};

DrawnVolume draw_volume(const RadarWorldRequest& request, int64_t index) {
  const RainWorld world{.seed = request.seed};
  const RadarVolume volume = world.volume(index);
  std::string digits;
  for (const char c : moment_text(volume.seconds))
    digits += c == ' ' ? "_" : c >= '0' && c <= '9' ? std::string(1, c) : "";
  if (request.kind == "radar") return {text(volume.site, digits, "_V06"), write_level2(volume)};
  const base::TemporaryFolder folder;
  write_odim(volume, folder.path() / "volume.h5");
  return {text(volume.site, digits, ".h5"), base::read_file(folder.path() / "volume.h5")};
}

void check_radar_world(const RadarWorldRequest& request) {
  if (request.classes != 0 || request.image_size != 0) {
    throw Error(Blame::user, text("--synthesize ", request.kind, " has neither --classes nor --image-size"),
                "leave them out; the grid is chosen when the files are prepared (--grid)");
  }
  if (request.count < 1 || request.count > 1'000'000) {
    throw Error(Blame::user, text("--count ", request.count, " is out of range"), "--count takes 1 to 1000000");
  }
}

}  // namespace

Dataset prepare_radar_world(const RadarWorldRequest& request,
                            const std::function<void(int64_t done, int64_t total)>& progress) {
  check_radar_world(request);
  Json file = Json::object();
  file["format"] = 1;
  file["kind"] = request.kind;
  file["count"] = request.count;
  file["seed"] = request.seed;
  Dataset dataset{.folder = request.folder, .classes = {}};
  dataset.num_train = request.count;
  if (auto complete = complete_set(dataset, file)) return *complete;
  return write_set(std::move(dataset), std::move(file), [&](Dataset& set, Json&) {
    base::Sha256 all;
    const int64_t threads = request.threads > 0 ? request.threads : site::usable_cores();
    work_in_order<DrawnVolume>(
        request.count, {threads, 16 * threads}, [&](int64_t i) { return draw_volume(request, i); },
        [&](int64_t i, DrawnVolume&& volume) {
          all.update(volume.file);
          place_file(request.folder / volume.name, volume.file);
          if (progress) progress(i + 1, request.count);
        });
    set.fingerprint = all.hex();
  });
}

}  // namespace lockstep::sources
