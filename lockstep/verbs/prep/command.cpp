// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/last_words.h"
#include "lockstep/site/launch.h"
#include "lockstep/site/manners.h"
#include "lockstep/site/mpi.h"
#include "lockstep/sources/pack/pack.h"
#include "lockstep/sources/pack/probe.h"
#include "lockstep/sources/pack/shapes.h"
#include "lockstep/sources/pack/synthesize.h"
#include "lockstep/sources/pack/synthesize_radar.h"
#include "lockstep/sources/pack/synthesize_sentences.h"
#include "lockstep/sources/pack/verify.h"
#include "lockstep/verbs/prep/tables.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::prep {
namespace {

using base::Arguments;
using base::Blame;
using base::Error;
using base::text;

constexpr int64_t kLongCount = 10000;  // images; more is work for a compute node

base::CommandLine command_line() {
  std::string formats = "formats of SOURCE (--format NAME; found out without it):\n";
  for (const auto& format : sources::source_formats()) {
    formats +=
        text("  ", format.name, std::string(std::max<size_t>(14 - format.name.size(), 1), ' '), format.help, "\n");
  }
  return {"prep",
          "[SOURCE]",
          "turn a collection into verified shards, check them, or draw a synthetic set",
          {{"--to", "DIR", "where it goes; a complete set there is left alone, an interrupted one is completed"},
           {"--format", "NAME", "layout of SOURCE, see below"},
           {"--images", "DIR", "where the images of a list lie; beside the list"},
           {"--path-column", "NAME", "of a table: which column names the image"},
           {"--label-column", "NAME", "of a table: which column is the class; none: there are no classes"},
           {"--split-column", "NAME", "of a table: which column says train, validate or test (none: split at random)"},
           {"--masks", "", "of coco and pets: the outlines of the objects as an image besides (seg.png)"},
           {"--validate", "SHARE", "of each class for validation; 0.1, or the source's own parts"},
           {"--test", "SHARE", "of each class for a test part; 0"},
           {"--max-side", "PIXELS", "shrink larger images to this; as they are"},
           {"--quality", "Q", "of JPEGs that are encoded again; 90"},
           {"--plain", "", "leave JPEGs byte for byte: no restart markers, not turned upright"},
           {"--shard-size", "BYTES", "of a shard, about; 256 MiB"},
           {"--dry-run", "", "forecast time, bytes and files; check the space; write nothing"},
           {"--repair", "", "make damaged and missing shards of a complete set again; SOURCE and options as they were"},
           {"--verify", "DIR", "check every checksum and sample of a prepared set"},
           {"--synthesize", "KIND",
            "draw a set: shapes (a folder of 10 classes), scenes laid out as kitti, coco, labels or captions; "
            "sentences (captions of such scenes among others); or the files of a made-up radar, radar (Level II) or "
            "odim"},
           {"--count", "N", "images to draw, a fifth of them for validation; 4000 (radar: volumes, 720)"},
           {"--classes", "K", "kinds to draw, 2 to 10 (scenes: 8); as many as there are"},
           {"--image-size", "PIXELS", "side of each drawn image; 96"},
           {"--frames", "N", "of radar: frames of a sequence; 17"},
           {"--every", "MINUTES", "of radar: from one frame to the next; 5"},
           {"--stride", "N", "of radar: frames from one sequence to the next; as --frames: none overlap"},
           {"--grid", "CELLS", "of radar: side of the grid around the site; 128"},
           {"--cell", "KM", "of radar: side of a cell; 2"},
           {"--nearest", "", "of radar: the gate nearest to a cell's centre, not the mean of Z over the cell"},
           {"--composite", "", "of radar: all sites on one grid around their middle, the strongest echo of each cell"},
           {"--rates", "", "of radar: numbers of plain arrays are mm/h, not dBZ"},
           {"--rain", "SHARE", "of radar: leave out sequences where it rains (0.5 mm/h) in less of the cells; 0"},
           {"--keep-order", "", "samples as SOURCE lists them: training gives the very weights it gives from SOURCE"},
           {"--seed", "N", "of the split, the order or the drawing; 1"},
           {"--threads", "N", "as many as there are cores"},
           {"--here", "", "on a login node: work there after all, with 2 threads at nice 19"},
           {"--json", "FILE", "the result as JSON; - is standard output"}},
          text(formats, "\nRanks of mpirun or srun share the shards among them.\n",
               "examples: lockstep prep photos/ --to data/photos --max-side 512\n",
               "          lockstep prep --verify data/photos\n",
               "          mpirun -n 8 lockstep prep photos/ --to data/photos\n",
               "          lockstep prep --synthesize shapes --count 4000 --classes 10 --to quickstart/shapes")};
}

std::string folder_of(const Arguments& arguments) {
  std::string folder = arguments.value_or("--to", "");
  if (folder.empty()) throw Error(Blame::user, "--to DIR is missing", "name the folder for the dataset");
  return folder;
}

std::optional<double> share_of(const Arguments& arguments, const char* option) {
  const auto words = arguments.value(option);
  if (!words) return std::nullopt;
  char* end = nullptr;
  const double share = std::strtod(words->c_str(), &end);
  if (end == words->c_str() || *end != '\0') {
    throw Error(Blame::user, text(option, " takes a share, not '", *words, "'"), text("for example ", option, " 0.1"));
  }
  return share;
}

double number_of(const Arguments& arguments, const char* option, double otherwise) {
  const auto words = arguments.value(option);
  if (!words) return otherwise;
  char* end = nullptr;
  const double number = std::strtod(words->c_str(), &end);
  if (end == words->c_str() || *end != '\0') {
    throw Error(Blame::user, text(option, " takes a number, not '", *words, "'"), text("for example ", option, " 5"));
  }
  return number;
}

// Sequences are parted by time, by the source itself: whoever draws lots would find half of a storm in each part.
sources::RadarOptions radar_options(const Arguments& arguments) {
  sources::RadarOptions radar;
  radar.frames = arguments.int_or("--frames", radar.frames);
  radar.stride = arguments.int_or("--stride", radar.stride);
  radar.minutes = number_of(arguments, "--every", radar.minutes);
  radar.grid.side = arguments.int_or("--grid", radar.grid.side);
  radar.grid.cell = 1000 * number_of(arguments, "--cell", radar.grid.cell / 1000);
  if (arguments.has("--nearest")) radar.gridding = sources::Gridding::nearest;
  radar.composite = arguments.has("--composite");
  radar.rates = arguments.has("--rates");
  radar.rain = share_of(arguments, "--rain").value_or(radar.rain);
  radar.validate = share_of(arguments, "--validate").value_or(radar.validate);
  radar.test = share_of(arguments, "--test").value_or(radar.test);
  return radar;
}

void refuse_radar_options(const Arguments& arguments) {
  for (const char* option :
       {"--frames", "--every", "--stride", "--grid", "--cell", "--nearest", "--composite", "--rates", "--rain"}) {
    if (!arguments.has(option)) continue;
    throw Error(Blame::user, text(option, " is of radar files, and SOURCE holds none"),
                "leave it out; --format radar for arrays of frames");
  }
}

int64_t threads_of(const Arguments& arguments) {
  const int64_t threads = arguments.int_or("--threads", 0);
  const int64_t allowed = site::behave_on_login_node();
  return threads == 0 ? allowed : threads;
}

sources::PackRequest pack_request(const Arguments& arguments) {
  sources::PackRequest request;
  request.source.path = arguments.only("SOURCE");
  request.source.format = arguments.value_or("--format", "");
  request.source.images = arguments.value_or("--images", "");
  request.source.path_column = arguments.value_or("--path-column", "");
  request.source.label_column = arguments.value_or("--label-column", "");
  request.source.part_column = arguments.value_or("--split-column", "");
  request.source.masks = arguments.has("--masks");
  request.folder = folder_of(arguments);
  request.source.radar = radar_options(arguments);
  if (sources::is_radar(request.source)) {
    request.source.format = "radar";
    if (arguments.has("--max-side")) {
      throw Error(Blame::user, "--max-side shrinks images, and frames of radars are codes",
                  "leave it out; --grid says how many cells a frame has");
    }
  } else {
    refuse_radar_options(arguments);
    request.validate = share_of(arguments, "--validate");
    request.test = share_of(arguments, "--test").value_or(0);
  }
  request.image.max_side = arguments.int_or("--max-side", 0);
  request.image.quality = static_cast<int>(arguments.int_or("--quality", request.image.quality));
  request.image.restarts = !arguments.has("--plain");
  if (const auto size = arguments.value("--shard-size")) request.shard_bytes = base::parse_bytes(*size);
  request.seed = arguments.int_or("--seed", request.seed);
  request.keep_order = arguments.has("--keep-order");
  request.threads = threads_of(arguments);
  return request;
}

int report_packed(const Arguments& arguments, const sources::PackRequest& request, const sources::Packed& packed) {
  base::Json result = packed.dataset;
  result["was_complete"] = packed.was_complete;
  result["shards_kept"] = packed.shards_kept;
  result["seconds"] = packed.seconds;
  base::give(arguments, result, packed_text(packed, request.folder));
  return 0;
}

// One of several ranks. What fails on one ends them all; what fails alike on all is told by rank 0, which is first.
int run_pack_among(sources::PackRequest request, const Arguments& arguments) {
  const site::Mpi mpi;
  const sources::Team team{mpi.rank(), mpi.size(), [&] { mpi.barrier(); }};
  if (arguments.int_or("--threads", 0) == 0) {
    request.threads = site::cores_per_rank(request.threads, site::read_launch().local_size);
  }
  try {
    base::Progress progress(base::progress_for_stderr());
    const auto show = [&](const sources::PackProgress& state) {
      progress.show(text("rank 0 of ", team.size, ": ", progress_text(state)));
    };
    const sources::Packed packed =
        sources::pack(request, team.rank == 0 ? show : std::function<void(const sources::PackProgress&)>(), team);
    progress.end();
    const int code = team.rank == 0 ? report_packed(arguments, request, packed) : 0;
    mpi.barrier();
    return code;
  } catch (const Error& error) {
    site::tell_last_words(error, team.rank);
    mpi.abort(error.exit_code());
  }
}

// For as many ranks as were started.
int run_forecast(sources::PackRequest request, const Arguments& arguments) {
  const site::Launch launch = site::read_launch();
  if (arguments.int_or("--threads", 0) == 0) request.threads = site::cores_per_rank(request.threads, launch.local_size);
  const sources::PackForecast forecast = sources::forecast_pack(request, launch.size);
  base::give(arguments, forecast.to_json(), forecast_text(forecast, request.folder));
  return forecast.fits() ? 0 : static_cast<int>(Blame::machine);
}

int run_repair(const sources::PackRequest& request, const Arguments& arguments) {
  sources::Repaired repaired;
  {
    base::Progress progress(base::progress_for_stderr());
    repaired =
        sources::repair(request, [&](const sources::PackProgress& state) { progress.show(progress_text(state)); });
  }
  base::Json all = base::Json::object();
  all["shards"] = repaired.num_shards;
  all["repaired"] = base::Json::array_of(repaired.damaged);
  all["seconds"] = repaired.seconds;
  base::give(arguments, all, repaired_text(repaired, request.folder));
  return 0;
}

int run_pack(const Arguments& arguments, const std::vector<std::string>& words) {
  const sources::PackRequest request = pack_request(arguments);
  if (arguments.has("--dry-run")) return run_forecast(request, arguments);
  site::refuse_on_login_node("prep", words, arguments.has("--here"));
  if (arguments.has("--repair")) return run_repair(request, arguments);
  if (site::read_launch().has_company) return run_pack_among(request, arguments);
  sources::Packed packed;
  {
    base::Progress progress(base::progress_for_stderr());
    packed = sources::pack(request, [&](const sources::PackProgress& state) { progress.show(progress_text(state)); });
  }
  return report_packed(arguments, request, packed);
}

int run_verify(const Arguments& arguments) {
  sources::VerifyResult result;
  {
    base::Progress progress(base::progress_for_stderr());
    result = sources::verify(*arguments.value("--verify"), threads_of(arguments), [&](int64_t done, int64_t total) {
      progress.show(text("checking ", done, " of ", total));
    });
  }
  base::give(arguments, result.to_json(), verify_text(result));
  return result.faults.empty() ? 0 : static_cast<int>(Blame::user);
}

// Draws with the options that every synthetic set has; `prepare` is prepare_shapes or prepare_scenes.
template <class Request, class Prepare>
sources::Dataset draw(const Arguments& arguments, const std::vector<std::string>& words, Request request,
                      Prepare prepare) {
  request.folder = folder_of(arguments);
  request.count = arguments.int_or("--count", request.count);
  request.classes = arguments.int_or("--classes", request.classes);
  request.seed = arguments.int_or("--seed", request.seed);
  request.image_size = arguments.int_or("--image-size", request.image_size);
  if (request.count > kLongCount) site::refuse_on_login_node("prep", words, arguments.has("--here"));
  request.threads = threads_of(arguments);
  base::Progress progress(base::progress_for_stderr());
  return prepare(request, [&](int64_t done, int64_t total) { progress.show(text("drawing ", done, " of ", total)); });
}

int run_synthesize(const Arguments& arguments, const std::vector<std::string>& words) {
  const std::string kind = *arguments.value("--synthesize");
  const std::vector<std::string> kinds{"shapes", "kitti", "coco", "labels", "captions", "sentences", "radar", "odim"};
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    throw Error(Blame::user, text("--synthesize knows no '", kind, "'"), base::did_you_mean(kind, kinds));
  }
  const bool shapes = kind == "shapes", radar = kind == "radar" || kind == "odim";
  sources::RadarWorldRequest world;
  world.kind = kind;
  sources::ScenesRequest scenes;
  scenes.kind = kind;
  const sources::Dataset dataset = shapes  ? draw(arguments, words, sources::ShapesRequest{}, sources::prepare_shapes)
                                   : radar ? draw(arguments, words, world, sources::prepare_radar_world)
                                   : kind == "sentences"
                                       ? draw(arguments, words, sources::SentencesRequest{}, sources::prepare_sentences)
                                       : draw(arguments, words, scenes, sources::prepare_scenes);
  if (base::give_json(arguments, dataset.to_json())) return 0;
  std::fputs((shapes                ? shapes_text(dataset)
              : radar               ? radar_text(dataset)
              : kind == "sentences" ? sentences_text(dataset)
                                    : scenes_text(dataset, kind))
                 .c_str(),
             stdout);
  return 0;
}

// Ranks share the packing; everything else is the work of one, the first, and the others have nothing to do.
bool is_work_of_another(const Arguments& arguments) {
  bool is_shared = true;
  for (const char* option : {"--verify", "--synthesize", "--dry-run", "--repair"}) is_shared &= !arguments.has(option);
  return !is_shared && site::read_launch().rank > 0;
}

}  // namespace

LOCKSTEP_VERB(prep)(const std::vector<std::string>& words) {
  const base::CommandLine line = command_line();
  const Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), 0;
  if (is_work_of_another(arguments)) return 0;
  if (arguments.has("--verify")) return run_verify(arguments);
  if (arguments.has("--synthesize")) return run_synthesize(arguments, words);
  if (arguments.positional.empty()) {
    throw Error(Blame::user, "nothing to prepare", "lockstep prep SOURCE --to DIR, or --synthesize shapes --to DIR");
  }
  return run_pack(arguments, words);
}

}  // namespace lockstep::verbs::prep
