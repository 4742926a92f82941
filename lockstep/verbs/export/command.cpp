// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/verbs/export/export.h"
#include "lockstep/verbs/verb.h"

namespace lockstep::verbs::exporting {
namespace {

const base::CommandLine& export_line() {
  static const base::CommandLine line{
      "export",
      "RUN",
      "a trained network as a file for other programs",
      {{"--to", "FILE", "FILE.onnx: network and weights, any batch; FILE.safetensors: the weights alone"},
       {"--fp16", "", "weights in 16 bits: half the file; it still computes in fp32"},
       {"--preprocess", "", "of ONNX: takes bytes, [batch, height, width, 3], and normalises them itself"},
       {"--licence", "TEXT", "of the weights, in your words: CC-BY-4.0"},
       {"--weights", "WHICH", "of a run: best (default where it has validation), last, or a step with a checkpoint"},
       {"--job", "JOB", "for weights outside a run folder"},
       {"--set", "KEY=VALUE", "override a key of the job"},
       {"--json", "FILE", "write the result as JSON (- = standard output, without the text)"}},
      "RUN is a run folder, a version of a store (STORE/NAME:TAG) or a weights file. The file says how images must be\n"
      "shown, what the classes are and what makes probabilities of the outputs: docs/export.md.\n"
      "examples: lockstep export runs/pets --to pets.onnx --preprocess\n"
      "          lockstep export runs/pets --to pets.safetensors --weights last\n"
      "          lockstep export quickstart/run --to quickstart/shapes.onnx"};
  return line;
}

}  // namespace

LOCKSTEP_VERB(export)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(export_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(export_line()).c_str(), stdout), 0;
  const std::string& source = arguments.only("run folder");
  const auto to = arguments.value("--to");
  if (!to) throw base::Error(base::Blame::user, "where to?", "--to FILE.onnx or --to FILE.safetensors");
  file_format(*to);  // before anything is loaded
  const training::Trained trained =
      training::load_trained({source, arguments.value_or("--job", ""), arguments.values("--set"), at::kCPU,
                              arguments.value_or("--weights", "")});
  for (const auto& note : trained.notes) std::fprintf(stderr, "%s\n", note.c_str());
  if (!trained.which.empty()) std::fprintf(stderr, "weights: %s\n", trained.which.c_str());
  const Exported exported = export_network(
      trained, {*to, arguments.has("--fp16"), arguments.has("--preprocess"), arguments.value_or("--licence", "")});
  for (const auto& note : exported.notes) std::fprintf(stderr, "note: %s\n", note.c_str());
  base::give(arguments, exported.to_json(), exported.to_text());
  return 0;
}

}  // namespace lockstep::verbs::exporting
