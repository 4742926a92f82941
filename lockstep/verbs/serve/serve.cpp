// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/serve/serve.h"

#include <ATen/Parallel.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <thread>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/results/terms.h"
#include "lockstep/run/folder.h"
#include "lockstep/store/store.h"
#include "lockstep/training/inference.h"
#include "lockstep/trust/calibration.h"

namespace lockstep::verbs::serve {
namespace {

using base::text;

constexpr std::chrono::milliseconds kLook{50};  // whether to stop
constexpr size_t kVersionDigits = 12;           // of the weights' SHA-256

// The network and what is cast of it, in this order.
struct LoadedNetwork {
  LoadedNetwork(training::Trained loaded, at::Device device) : trained(std::move(loaded)), inference(trained, device) {}
  training::Trained trained;
  training::Inference inference;
  std::atomic<int64_t> passes = 0;  // under way
  int num_threads = 1;              // of a pass that is alone
};

// A pass has all threads while it is alone; else each has one, since passes beside each other get through more than
// one pass on several threads, which wait for each other at every layer.
class PassThreads {
 public:
  explicit PassThreads(LoadedNetwork& network) : passes_(network.passes) {
    const int wanted = ++passes_ == 1 ? network.num_threads : 1;
    if (at::get_num_threads() != wanted) at::set_num_threads(wanted);  // of this thread
  }
  ~PassThreads() { --passes_; }
  PassThreads(const PassThreads&) = delete;
  PassThreads& operator=(const PassThreads&) = delete;

 private:
  std::atomic<int64_t>& passes_;
};

std::vector<serving::OutputRows> plain_outputs(const objective::HostRows& host) {
  std::vector<serving::OutputRows> outputs;
  outputs.reserve(host.size());
  for (const auto& [name, tensor] : host) {
    const float* values = tensor.const_data_ptr<float>();
    outputs.push_back({name, tensor.numel() / std::max<int64_t>(1, tensor.size(0)), {values, values + tensor.numel()}});
  }
  return outputs;
}

// As predict has it: where the run was calibrated for these very weights, confidences are; 1: they are as they come.
double temperature_of(const training::Trained& trained) {
  if (trained.job.task != spec::Task::classify) return 1;
  const auto found = trust::read_calibration(trained.trust);
  if (!found) return 1;
  const auto terms = results::terms_of(trained.job, trained.weights, trained.classes, 0);
  return results::difference(found->terms, terms).empty() ? found->temperature : 1;
}

// softmax(logits / T) from softmax(logits).
void calibrate_rows(serving::OutputRows& probabilities, double temperature) {
  const auto width = static_cast<size_t>(probabilities.width);
  for (size_t row = 0; row < probabilities.values.size(); row += width) {
    const std::span<float> shares = std::span(probabilities.values).subspan(row, width);
    double sum = 0;
    for (const float share : shares) sum += std::pow(static_cast<double>(share), 1 / temperature);
    for (float& share : shares) {
      share = static_cast<float>(std::pow(static_cast<double>(share), 1 / temperature) / sum);
    }
  }
}

// Weights of a run under way may lie in partitions: then it is their place that counts.
std::string version_of(const base::Path& weights) {
  const bool is_file = std::filesystem::is_regular_file(weights);
  return (is_file ? base::sha256_of_file(weights) : base::sha256_hex(weights.string())).substr(0, kVersionDigits);
}

// Changes when the file does: it is replaced, or written to.
std::string stamp(const base::Path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) return "none";
  return text(found.st_ino, ".", found.st_size, ".", found.st_mtim.tv_sec, ".", found.st_mtim.tv_nsec);
}

}  // namespace

std::shared_ptr<const serving::ServedModel> serve_trained(const training::TrainedOptions& options,
                                                          const std::string& name) {
  const auto loaded = std::make_shared<LoadedNetwork>(training::load_trained(options), options.device);
  const training::Trained& trained = loaded->trained;
  if (!trained.task->main_member().empty()) {
    throw base::Error(base::Blame::user,
                      base::text("task ", name_of(trained.job.task), " is not served: serve takes images"),
                      "lockstep predict RUN list.txt --to said.jsonl");
  }
  training::use_threads(trained.job);
  loaded->num_threads = at::get_num_threads();
  serving::ModelOptions model;
  model.name = name.empty() ? trained.job.name : name;
  model.version = version_of(trained.weights);
  model.which = trained.which;
  model.network = trained.network.name();
  model.job = trained.job;
  model.task = trained.task;
  model.classes = trained.classes;
  const double temperature = temperature_of(trained);
  if (temperature != 1) model.which += text(model.which.empty() ? "" : ", ", "calibrated confidences");
  return std::make_shared<serving::ServedModel>(std::move(model), [loaded, temperature](const loader::Batch& batch) {
    const PassThreads threads(*loaded);
    auto outputs = plain_outputs(loaded->inference.outputs(batch));
    for (auto& output : outputs) {
      if (temperature != 1 && output.name == "probabilities") calibrate_rows(output, temperature);
    }
    return outputs;
  });
}

serving::ModelSource model_source(const training::TrainedOptions& options, const std::string& name) {
  if (const auto reference = store::find_reference(options.source.string())) {
    const std::string plain = reference->name.substr(0, reference->name.find(':'));
    return {[reference] { return store::id_of(reference->store, reference->name); },
            [options, name = name.empty() ? plain : name] { return serve_trained(options, name); }};
  }
  const auto identity = [options] {
    if (!std::filesystem::is_directory(options.source)) return stamp(options.source);
    const run::RunPaths paths{options.source};
    return text(stamp(paths.weights()), " ", stamp(paths.checkpoints()), " ", stamp(paths.checkpoints() / "best"));
  };
  return {identity, [options, name] { return serve_trained(options, name); }};
}

void serve(const ServeOptions& options) {
  serving::ModelSlot slot(options.source, options.look_every, options.say);
  serving::ServiceOptions service_options = options.service;
  if (options.device.is_cpu()) service_options.batching.runners = at::get_num_threads();
  serving::Service service(slot, service_options);
  web::ServerOptions server_options = options.server;
  server_options.log = [&](const web::Access& access) {
    service.count(access);
    if (options.server.log) options.server.log(access);
  };
  web::Server server(server_options, [&](web::Request&& request, const web::Answer& answer) {
    service.handle(std::move(request), answer);
  });
  options.started(server, *slot.current());
  while (!options.stop()) std::this_thread::sleep_for(kLook);
  service.drain();
  server.stop(options.drain);
}

}  // namespace lockstep::verbs::serve
