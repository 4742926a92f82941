// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/trace.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <c10/util/accumulate.h>
#include <sys/mman.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/feeding.h"
#include "lockstep/step/evaluate.h"
#include "lockstep/step/precision.h"
#include "lockstep/step/step.h"
#include "lockstep/step/step_graph.h"
#include "lockstep/step/views.h"
#include "lockstep/trace/attention.h"
#include "lockstep/trace/simulated_device.h"
#include "lockstep/trace/simulated_group.h"

namespace lockstep::trace {
namespace {

using forecast::MemoryClass;

int64_t rows_of(const spec::Job& job, const Simulation& simulation) {
  if (simulation.rows > 0) return simulation.rows;
  return (job.training.global_batch + simulation.ranks - 1) / simulation.ranks;
}

std::unique_ptr<comm::Group> make_group(const Simulation& simulation, const std::shared_ptr<Recorder>& recorder) {
  return simulation.ranks > 1 ? simulated_group(simulation.ranks, recorder) : comm::single_group();
}

int64_t tensor_bytes(const std::vector<model::Named>& named) {
  int64_t bytes = 0;
  for (const auto& entry : named) bytes += static_cast<int64_t>(entry.tensor.nbytes());
  return bytes;
}

// In the host's memory, with an address and nothing behind it: a batch that no host could hold is planned like others.
at::Tensor untouched_values(at::IntArrayRef shape, at::ScalarType type) {
  const auto bytes = static_cast<size_t>(c10::multiply_integers(shape)) * c10::elementSize(type);
  void* const address =
      ::mmap(nullptr, std::max<size_t>(bytes, 1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    throw base::Error(base::Blame::user,
                      base::text("training.global_batch: a batch of ", base::format_bytes(static_cast<double>(bytes)),
                                 " has no room in the address space"),
                      "a smaller batch");
  }
  return at::from_blob(
      address, shape, [bytes](void* from) { ::munmap(from, std::max<size_t>(bytes, 1)); }, type);
}

// As they lie in the loader's memory.
at::Tensor empty_values(const task::Field& field, int64_t rows, at::Device device) {
  std::vector<int64_t> shape{rows};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  if (field.kind == task::Field::Kind::image) std::rotate(shape.begin() + 1, shape.begin() + 2, shape.end());
  if (device.is_cpu()) return untouched_values(shape, step::scalar_type(field.element));
  return at::empty(shape, at::TensorOptions(step::scalar_type(field.element)).device(device));
}

// What a phase on cached features is given in place of samples.
struct CachedFeatures {
  size_t from = 0;                                // the first block that takes them; 0: there are none
  std::vector<std::vector<int64_t>> shapes = {};  // of one row each
  std::vector<std::string> inputs = {};           // fields that nobody reads any more
};

model::Network make_simulated(const spec::Job& job) {
  return model::make_network(job, SimulatedDevice::device(), model::Values::none);
}

size_t first_trained(const Simulation& simulation, const model::Network& network) {
  const bool all = !simulation.phase || simulation.phase->train_from.empty();
  return all ? 0 : network.index_of(simulation.phase->train_from);
}

// One rank's samples, copied to the GPU as the loader's batch is (step::to_samples), or the features of as many.
step::Samples make_samples(const std::vector<task::Field>& fields, int64_t rows, const CachedFeatures& cached = {}) {
  const int64_t first = recorder().next_storage();
  const at::Device device = SimulatedDevice::device();
  step::Samples samples;
  samples.global_size = rows;
  samples.from = cached.from;
  for (std::vector<int64_t> shape : cached.shapes) {
    shape.insert(shape.begin(), rows);
    samples.features.push_back(untouched_values(shape, at::kFloat).to(device));
  }
  for (const auto& field : fields) {
    if (std::find(cached.inputs.begin(), cached.inputs.end(), field.name) != cached.inputs.end()) continue;
    samples.fields.set(field.name,
                       step::field_on(device, field, empty_values(field, rows, at::kCPU), image::Normalisation()));
  }
  recorder().classify_from(first, MemoryClass::inputs);
  return samples;
}

// Asked of one sample on a device of its own: what it takes is no part of the recording.
CachedFeatures cached_features(const spec::Job& job, const Simulation& simulation) {
  if (!simulation.phase || !simulation.phase->cache_features) return {};
  const SimulatedDevice device(std::make_shared<Recorder>());
  const model::Network network = make_simulated(job);
  const c10::AutoGradMode no_gradients(false);
  CachedFeatures cached{.from = first_trained(simulation, network), .inputs = network.interface().inputs};
  const step::Samples one = make_samples(task::make_task(job)->fields(), 1);
  for (const at::Tensor& value : network.run(network.inputs_from(one.fields), model::Mode::evaluate, 0, cached.from)) {
    cached.shapes.push_back(value.sizes().slice(1).vec());
  }
  return cached;
}

// What a training step is given, step after step. Where the run has a feeder, its two lasting slots take turns; what
// goes into them travels on a stream of its own and is no part of the step.
class Inputs {
 public:
  Inputs(const spec::Job& job, int64_t rows, CachedFeatures cached)
      : fields_(task::make_task(job)->fields()), rows_(rows), cached_(std::move(cached)) {
    if (cached_.from > 0 || !run::is_fed(job.data.pixels, /*on_gpu=*/true)) return;
    const int64_t first = recorder().next_storage();
    for (int64_t i = 0; i < run::kFeederSlots; ++i) {
      Slot& slot = slots_.emplace_back();
      for (const auto& field : fields_) slot.push_back(empty_values(field, rows, SimulatedDevice::device()));
    }
    recorder().classify_from(first, MemoryClass::inputs);
  }

  step::Samples next(int64_t ranks, int64_t step) const {
    step::Samples samples =
        slots_.empty() ? make_samples(fields_, rows_, cached_) : from(slots_[static_cast<size_t>(step % 2)]);
    samples.step = step;
    samples.global_size = rows_ * ranks;
    return samples;
  }

 private:
  using Slot = std::vector<at::Tensor>;  // by field
  step::Samples from(const Slot& slot) const {
    const int64_t first = recorder().next_storage();
    step::Samples samples;
    for (size_t i = 0; i < slot.size(); ++i) {
      const bool image = fields_[i].kind == task::Field::Kind::image;
      samples.fields.set(fields_[i].name, image ? step::shown_image(slot[i], image::Normalisation()) : slot[i]);
    }
    recorder().classify_from(first, MemoryClass::inputs);
    return samples;
  }

  std::vector<task::Field> fields_;
  int64_t rows_;
  CachedFeatures cached_;
  std::vector<Slot> slots_;
};

// Also where they lie in buckets of the reducer, or in a rank's sums: a bucket holds nothing else.
void classify_gradients(const step::Step& step) {
  for (const at::Tensor& gradient : step.gradients()) {
    recorder().classify(storage_id(gradient), MemoryClass::gradients);
  }
}

// Whole weights, where the step leaves none in the network.
void assemble(step::Step& step, const model::Network& network) {
  step.assemble();
  for (const auto& parameter : network.parameters()) {
    recorder().classify(storage_id(parameter.tensor), MemoryClass::weights);
  }
}

void evaluate_batch(const spec::Job& job, const model::Network& network, int64_t rows, const CachedFeatures& cached) {
  const step::Samples samples = make_samples(task::make_task(job)->fields(), rows, cached);
  const auto objective = objective::make_objective(job);
  if (cached.from == 0) {
    objective->scored(
        step::evaluate_pass(network, samples.fields, *objective, {job.training.precision, job.evaluation.views}));
    return;
  }
  std::vector<model::NamedTensors> outputs;  // as training::evaluate_features does it
  for (int64_t view = 0; view < step::num_views(job.evaluation.views); ++view) {
    model::Bundle values = network.cast(samples.features, step::compute_type(job.training.precision), cached.from);
    values = network.run(std::move(values), model::Mode::evaluate, cached.from, network.blocks().size());
    outputs.push_back(network.outputs_from(values));
  }
  objective->scored(outputs.size() == 1 ? outputs.front() : objective->average(outputs));
}

// As training::compute_features does it.
void fill_batch(const spec::Job& job, const model::Network& network, int64_t rows, size_t to, spec::Views views) {
  const step::Samples samples = make_samples(task::make_task(job)->fields(), rows);
  for (const auto& view : step::views_of(samples.fields, views)) {
    model::Bundle values = network.cast(network.inputs_from(view), step::compute_type(job.training.precision));
    for (const at::Tensor& value : network.run(std::move(values), model::Mode::evaluate, 0, to)) {
      value.to(at::kCPU, at::kFloat);
    }
  }
}

// As a run does it between two steps (Session::evaluate).
void evaluate_between(const spec::Job& job, int64_t rows, step::Step& step, const model::Network& network,
                      step::Ema* ema, const CachedFeatures& cached) {
  recorder().evaluation_begin();
  assemble(step, network);
  if (ema) ema->swap();
  {
    const c10::AutoGradMode no_gradients(false);
    const step::PassPrecision precision(network, job.training.precision, SimulatedDevice::device());
    evaluate_batch(job, network, rows, cached);
  }
  if (ema) ema->swap();
}

model::Network simulated_network(const spec::Job& job) {
  const int64_t first = recorder().next_storage();
  model::Network network = make_simulated(job);
  recorder().classify_from(first, MemoryClass::weights);
  return network;
}

// What the recording says of the job and its network.
void describe(forecast::Recording& recording, const spec::Job& job, const Simulation& simulation,
              const model::Network& network) {
  recording.source = "lockstep trace";
  recording.title = job.model.name;
  recording.precision = name_of(job.training.precision);
  recording.optimizer = name_of(job.training.optimizer.name);
  const bool attends = std::any_of(recording.operators.begin(), recording.operators.end(),
                                   [](const auto& call) { return call.kind == forecast::OperatorClass::attention; });
  if (attends) recording.attention = name_of(simulation.attention);
  recording.layout = job.model.layout;
  const int64_t rows = rows_of(job, simulation);
  const int64_t slices = job.training.virtual_ranks;
  const int64_t pass = slices > 0 ? (job.training.global_batch + slices - 1) / slices : job.training.micro_batch;
  recording.micro_batch = pass > 0 ? std::min(rows, pass) : rows;
  recording.accumulation = (rows + recording.micro_batch - 1) / recording.micro_batch;
  recording.ranks = simulation.ranks;
  recording.image_size = job.data.image_size.is_square() ? job.data.image_size.height : 0;
  recording.parameters = network.parameter_count();
  recording.parameter_bytes = tensor_bytes(network.parameters());
  for (const auto& block : network.blocks()) recording.blocks.push_back(block->name());
}

void check(const spec::Job& job, const Simulation& simulation) {
  base::ensure(job.model.classes > 0, "the number of classes is known when a job is traced");
  base::ensure(simulation.ranks > 0 && simulation.steps > 0 && simulation.rows >= 0,
               "a simulation has ranks, steps and rows");
  base::ensure(simulation.evaluation_rows == 0 || simulation.steps >= 2, "an evaluation stands between two steps");
}

}  // namespace

forecast::Recording trace_step(const spec::Job& job, const Simulation& simulation) {
  check(job, simulation);
  const CachedFeatures cached = cached_features(job, simulation);
  const auto recorder = std::make_shared<Recorder>();
  const SimulatedDevice device(recorder);
  set_attention(simulation.attention);
  model::Network network = simulated_network(job);
  network.on_block([&](int64_t index) { recorder->enter_block(index); });

  std::unique_ptr<step::Ema> ema;
  int64_t first = recorder->next_storage();
  if (job.training.ema_decay > 0) ema = std::make_unique<step::Ema>(job.training.ema_decay, network);
  recorder->classify_from(first, MemoryClass::averages);

  const auto group = make_group(simulation, recorder);
  first = recorder->next_storage();
  const step::StepOptions options{.training = job.training,
                                  .device = SimulatedDevice::device(),
                                  .train_from = first_trained(simulation, network),
                                  .freeze_norm = simulation.phase && simulation.phase->freeze_norm,
                                  .ema = ema.get(),
                                  .graph = simulation.graph,
                                  .objective = objective::make_objective(job)};
  const bool captured = step::StepGraph::is_wanted(options, *group) && cached.from == 0;
  step::Step step(network, *group, options);
  recorder->classify_from(first, MemoryClass::optimizer);
  if (step.copies()) {
    for (const at::Tensor& copy : step.copies()->all()) recorder->classify(storage_id(copy), MemoryClass::weights);
  }
  if (step.update()) recorder->classify(storage_id(step.update()->numbers()), MemoryClass::other);
  if (step.partitioning()) {
    for (const at::Tensor& part : step.partitioning()->weight_parts())
      recorder->classify(storage_id(part), MemoryClass::weights);
  }

  const Inputs inputs(job, rows_of(job, simulation), cached);
  for (int64_t i = 0; i < simulation.steps; ++i) {
    recorder->step_begin();
    {
      const step::Samples samples = inputs.next(simulation.ranks, i);
      const step::StepResult result = step.run(samples, job.training.optimizer.lr);
      base::ensure(result.finite && result.samples == samples.global_size, "a simulated step is an ordinary one");
      classify_gradients(step);
    }
    if (simulation.evaluation_rows > 0 && i == simulation.steps - 2) {
      evaluate_between(job, simulation.evaluation_rows, step, network, ema.get(), cached);
    }
    recorder->step_end();
  }
  if (simulation.evaluation_rows == 0) assemble(step, network);
  if (simulation.evaluation_rows > 0 && captured) {
    evaluate_between(job, simulation.evaluation_rows, step, network, ema.get(), cached);
  }
  forecast::Recording recording = recorder->finish();
  describe(recording, job, simulation, network);
  recording.captured = captured;
  recording.checkpoint_bytes = recording.parameter_bytes + tensor_bytes(network.buffers()) + step.state_bytes() +
                               (ema ? tensor_bytes(ema->averages()) : 0);
  return recording;
}

forecast::Recording trace_evaluation(const spec::Job& job, const Simulation& simulation) {
  check(job, simulation);
  const CachedFeatures cached = cached_features(job, simulation);
  const auto recorder = std::make_shared<Recorder>();
  const SimulatedDevice device(recorder);
  set_attention(simulation.attention);
  model::Network network = simulated_network(job);
  network.on_block([&](int64_t index) { recorder->enter_block(index); });

  const c10::AutoGradMode no_gradients(false);
  const step::PassPrecision precision(network, job.training.precision, SimulatedDevice::device());
  for (int64_t i = 0; i < simulation.steps; ++i) {
    recorder->step_begin();
    recorder->evaluation_begin();
    if (simulation.fills) {
      const bool flips = simulation.phase->cache_flips;
      fill_batch(job, network, rows_of(job, simulation), cached.from, flips ? spec::Views::flip : spec::Views::center);
    } else {
      evaluate_batch(job, network, rows_of(job, simulation), cached);
    }
    recorder->step_end();
  }
  forecast::Recording recording = recorder->finish();
  describe(recording, job, simulation, network);
  recording.accumulation = 1;
  return recording;
}

}  // namespace lockstep::trace
