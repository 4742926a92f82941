// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/text.h"
#include "lockstep/site/manners.h"
#include "lockstep/verbs/prep/prep.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs {
namespace {

using base::Blame;
using base::Error;
using base::text;

constexpr int64_t kLongCount = 10000;  // pictures; more is work for a compute node

base::CommandLine command_line() {
  return {"prep",
          "",
          "make a dataset ready for training",
          {{"--synthesize", "KIND", "draw a labelled set: shapes (10 kinds of shapes and textures, as JPEGs)"},
           {"--to", "DIR", "where it goes; a complete set there is left alone, an interrupted one is completed"},
           {"--count", "N", "pictures in all, a fifth of them for validation; 4000"},
           {"--classes", "K", "kinds, 2 to 10; 10"},
           {"--seed", "N", "another seed, other pictures; 1"},
           {"--image-size", "PIXELS", "side of each picture; 96"},
           {"--threads", "N", "drawing threads; as many as there are cores"},
           {"--here", "", "on a login node: draw many pictures there after all, with 2 threads at nice 19"},
           {"--json", "FILE", "the result as JSON; - is standard output"}},
          "lockstep prep --synthesize shapes --count 4000 --classes 10 --to data/shapes\n"};
}

ShapesRequest request_of(const base::Arguments& arguments) {
  const auto kind = arguments.value("--synthesize");
  if (!kind) throw Error(Blame::user, "nothing to prepare", "lockstep prep --synthesize shapes --to DIR");
  if (*kind != "shapes") {
    throw Error(Blame::user, text("--synthesize knows no '", *kind, "'"), base::did_you_mean(*kind, {"shapes"}));
  }
  const auto folder = arguments.value("--to");
  if (!folder || folder->empty()) throw Error(Blame::user, "--to DIR is missing", "name the folder for the dataset");
  ShapesRequest request{.folder = *folder};
  request.count = arguments.int_or("--count", request.count);
  request.classes = arguments.int_or("--classes", request.classes);
  request.seed = arguments.int_or("--seed", request.seed);
  request.image_size = arguments.int_or("--image-size", request.image_size);
  request.threads = arguments.int_or("--threads", request.threads);
  return request;
}

void print(const Dataset& dataset) {
  const std::string folder = dataset.folder.string();
  if (dataset.was_complete) {
    std::printf("%s is complete already: nothing to do\n", folder.c_str());
  } else {
    std::printf("drawn in %s\n", base::duration_text(dataset.seconds).c_str());
  }
  std::printf("  %-24s %lld pictures\n", (folder + "/train").c_str(), static_cast<long long>(dataset.num_train));
  std::printf("  %-24s %lld pictures\n", (folder + "/validate").c_str(), static_cast<long long>(dataset.num_validate));
  std::printf("  %-24s %s\n", text(dataset.classes.size(), " classes").c_str(),
              base::join(dataset.classes, ", ").c_str());
  std::printf("  %-24s a look at each class\n", (folder + "/contact.jpg").c_str());
}

}  // namespace

LOCKSTEP_VERB(prep)(const std::vector<std::string>& words) {
  const base::CommandLine line = command_line();
  const base::Arguments arguments = base::parse_arguments(line, words);
  if (arguments.has("--help")) return std::fputs(base::help_text(line).c_str(), stdout), 0;
  ShapesRequest request = request_of(arguments);
  if (request.count > kLongCount) site::refuse_on_login_node("prep", words, arguments.has("--here"));
  if (const int64_t allowed = site::behave_on_login_node(); request.threads == 0) request.threads = allowed;

  Dataset dataset;
  {
    base::Progress progress(base::progress_for_stderr());
    dataset = prepare_shapes(
        request, [&](int64_t done, int64_t total) { progress.show(text("drawing ", done, " of ", total)); });
  }
  const std::string json = arguments.value_or("--json", "");
  if (json == "-") {
    std::printf("%s\n", dataset.to_json().dump().c_str());
    return 0;
  }
  if (!json.empty()) base::write_json(json, dataset.to_json());
  print(dataset);
  return 0;
}

}  // namespace lockstep::verbs
