// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/console.h"
#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/mapping_guard.h"
#include "lockstep/base/text.h"
#include "lockstep/site/cores.h"
#include "lockstep/site/manners.h"
#include "lockstep/site/torch_library.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/version.h"

namespace {

using lockstep::base::Blame;
using lockstep::base::Error;
using lockstep::base::text;

struct Verb {
  const char* name;
  const char* library;
  const char* summary;
};

// Of a wheel (cmake/wheel.cmake): the torch that it was built with, and beside which it is installed. Else empty.
constexpr std::string_view kWheelTorch = LOCKSTEP_WHEEL_TORCH;

constexpr Verb kVerbs[] = {
#define GROUP(heading)
#define VERB(name, library, summary) {#name, #library, summary},
#include "lockstep/verbs/verbs.def"
#undef VERB
#undef GROUP
};

// What other programs call a verb, or what people look for; behind the verb what to say besides.
struct OtherName {
  std::string_view words;  // between blanks
  std::string_view answer;
};
constexpr OtherName kOtherNames[] = {
    {" sweep search hyperparameters optimize hpo optuna ", "lockstep tune STUDY.json"},
    {" onnx torchscript convert ", "lockstep export RUN --to FILE.onnx"},
    {" registry models version versions tag rollback ", "lockstep store"},
    {" evaluate evaluation test validate val score ", "lockstep eval RUN"},
    {" inference infer classify prediction ", "lockstep predict RUN IMAGES"},
    {" deploy server api endpoint triton ", "lockstep serve RUN"},
    {" fit finetune fine-tune run resume continue start ", "lockstep train JOB; the same command goes on after a stop"},
    {" download fetch pull install ", "lockstep get"},
    {" prepare pack preprocess dataset data shard synth ", "lockstep prep SOURCE --to DIR"},
    {" benchmark profile speed ", "lockstep bench"},
    {" check info env diagnose system ", "lockstep doctor"},
    {" example demo samples init ", "lockstep examples DIR"},
    {" config schema docs new ", "lockstep explain job"},
    {" sbatch qsub queue launch slurm pbs status ", "lockstep submit JOB"},
    {" estimate forecast predict-memory memory cost ", "lockstep plan JOB"},
    {" compare comparison versus ", "lockstep diff RUN RUN"},
    {" monitor follow tail top progress attach ", "lockstep watch RUN"},
    {" html show results view plot tensorboard ", "lockstep report RUN"},
};

std::string fix_for_verb(const std::string& name, const std::vector<std::string>& names) {
  for (const auto& row : kOtherNames) {
    if (row.words.find(text(" ", name, " ")) != std::string_view::npos) return std::string(row.answer);
  }
  return lockstep::base::did_you_mean(name, names);
}

void print_help() {
  std::printf(
      "lockstep %s: plan, prepare, train, evaluate and deploy deep networks on shared machines\n\n"
      "usage: lockstep <verb> [arguments]     lockstep <verb> --help ends with an example\n"
      "first: lockstep doctor; in the source tree `make quickstart` shows the rest\n",
      LOCKSTEP_VERSION);
#define GROUP(heading) std::printf("\n%s\n", heading);
#define VERB(name, library, summary) std::printf("  %-9s %s\n", #name, summary);
#include "lockstep/verbs/verbs.def"
#undef VERB
#undef GROUP
  std::printf(
      "\nevery verb: --json FILE (- = standard output); exit codes: 0 done, 2 user, 3 machine, 4 bug, "
      "85 requeue me\n");
}

bool opens_libtorch(std::string_view name) {
  return std::any_of(std::begin(kVerbs), std::end(kVerbs),
                     [&](const Verb& verb) { return name == verb.name && std::string_view(verb.library) == "torch"; });
}

// OpenMP threads that wait by spinning take the cores from whoever shares the machine, the other half of their own team
// among them: a ResNet-18 step beside another job took 4.2 s so and 1.7 s with sleeping waits. On a quiet machine
// spinning is 5 % faster (ViT tiny). So: by the load that is there already; the user's own setting counts first.
void wait_without_spinning_when_shared() {
  double load = 0;
  const bool shared = getloadavg(&load, 1) == 1 && load > 0.5 * static_cast<double>(lockstep::site::usable_cores());
  if (shared && std::getenv("GOMP_SPINCOUNT") == nullptr) setenv("OMP_WAIT_POLICY", "passive", 0);
}

// The torch rooms live in a library of their own, opened only for the verbs that need it: libtorch takes 0.25 s.
lockstep::verbs::Entry* find_entry(const Verb& verb) {
  const std::string file = text("liblockstep_", verb.library, ".so");
  wait_without_spinning_when_shared();  // read once, when OpenMP's library is loaded
  if (!kWheelTorch.empty() && std::string_view(verb.library) == "torch") {
    lockstep::site::open_torch_beside(std::string(kWheelTorch));
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    // Why it failed decides what helps: a library that is not there says so, a limit on memory does too.
    const std::string why = dlerror();
    const bool absent = why.find("cannot open shared object file") != std::string::npos;
    throw Error(Blame::machine, text("cannot open ", file, ": ", why),
                absent ? "libtorch was not there when this was built, or moved since: `make deps build`"
                       : "is there too little memory for this process? see ulimit -v, and the job's own limit");
  }
  void* entry = dlsym(library, text("lockstep_verb_", verb.name).c_str());
  lockstep::base::ensure(entry != nullptr, text(file, " holds the verb ", verb.name));
  return reinterpret_cast<lockstep::verbs::Entry*>(entry);
}

int run_verb(const std::string& name, const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const auto& verb : kVerbs) {
    if (name == verb.name) {
      lockstep::site::behave_on_login_node();  // before any thread, and before libtorch reads OMP_NUM_THREADS
      return find_entry(verb)(words);
    }
    names.emplace_back(verb.name);
  }
  throw Error(Blame::user, text("there is no verb '", name, "'"), fix_for_verb(name, names));
}

int run(int argc, char** argv) {
  if (argc < 2) return print_help(), static_cast<int>(Blame::user);
  const std::string first = argv[1];
  if (first == "--help" || first == "-h" || first == "help") return print_help(), 0;
  if (first == "--version") {
    std::printf("lockstep %s (%s)\n", LOCKSTEP_VERSION, std::string(lockstep::base::build_commit()).c_str());
    return 0;
  }
  return run_verb(first, {argv + 2, argv + argc});
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::base::name_lost_mappings();
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on file sizes is an error of write(), with our words and exit code
  try {
    lockstep::base::open_console();
    const int code = run(argc, argv);
    if (code == lockstep::base::kExitDone) lockstep::base::check_output();
    return code;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "lockstep: machine error: %s\n  fix: check permissions and free space: ls -ld, df -h\n",
                 error.what());
    return static_cast<int>(Blame::machine);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "lockstep: machine error: out of memory\n  fix: %sa node with more memory\n",
                 argc > 1 && opens_libtorch(argv[1]) ? "a smaller training.micro_batch or data.image_size, or " : "");
    return static_cast<int>(Blame::machine);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lockstep: bug: %s\n  fix: please report this with the command that showed it\n",
                 error.what());
    return static_cast<int>(Blame::bug);
  }
}
