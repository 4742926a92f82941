// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/model/batch_norm.h"
#include "lockstep/model/named_tensors.h"
#include "lockstep/spec/job.h"

namespace lockstep::model {

// frozen: part of a training step, with what training gives, but batch norms and dropout are as in evaluation.
enum class Mode { train, frozen, evaluate };

// What passes from block to block: one tensor in most networks, several where a pyramid, a recurrent state or a second
// head travels along.
using Bundle = std::vector<at::Tensor>;

// One named part of a network: the unit of freezing, recomputation, gathering, heat maps and per-layer planning.
class Block {
 public:
  explicit Block(std::string name) : name_(std::move(name)) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  const std::string& name() const { return name_; }
  // Whether our own operators are asked for and may take a tensor of this place: a GPU's.
  bool fuses(const at::Tensor& tensor) const { return kernels == spec::Kernels::fused && tensor.is_cuda(); }
  // Keeps nothing of it: what backward needs is in autograd's graph, and recomputation runs it a second time. An entry
  // that it has no use for is given on as it came.
  virtual Bundle run(const Bundle& input, Mode mode) = 0;

  // In the order of the reference implementation. forward() reads the tensors from here each time, never from a copy
  // taken earlier: the step puts 16-bit casts in their place for the length of one pass (precision bf16).
  // Convolution weights lie in the order of model.layout, channels_last unless asked otherwise (ResNet-18's step on a
  // CPU: 1.98 s against 2.25 s): call contiguous() before reading their bytes.
  std::vector<Named> parameters;
  std::vector<Named> buffers;           // batch-norm statistics; saved with the weights, not trained
  std::vector<std::string> classifier;  // parameters whose first dimension is the class count
  std::optional<at::Generator> random;  // dropout draws from it; none: from libtorch's own, as everybody in the process
  BatchNormRule batch_norm;             // of its batch norms while training; none: plain_batch_norm
  spec::Kernels kernels = spec::Kernels::reference;  // fused: our own operators, where they take the tensors

 private:
  std::string name_;
};

// A block of one tensor: changes the first entry of the bundle and gives the others on.
class PlainBlock : public Block {
 public:
  using Block::Block;
  Bundle run(const Bundle& input, Mode mode) final;
  virtual at::Tensor forward(const at::Tensor& input, Mode mode) = 0;
};

// What a network takes and gives, by name: the entries of its first and of its last bundle. Those that only training
// has (auxiliary heads) stand last among the outputs.
struct Interface {
  std::vector<std::string> inputs = {"image"};
  std::vector<std::string> outputs = {"output"};   // [batch, numbers of the head]
  std::vector<std::string> exact = {};             // inputs that keep their type in every precision: boxes, labels
  std::vector<std::string> training_outputs = {};  // where a training step has others altogether; empty: the same
};

// Stem, ordered named blocks, head: blocks().front() is "stem", blocks().back() is "head".
class Network {
 public:
  Network(std::string name, std::vector<std::unique_ptr<Block>> blocks,
          at::MemoryFormat images = at::MemoryFormat::ChannelsLast, Interface interface = {});
  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }
  size_t index_of(const std::string& block) const;  // user error with the nearest names

  const Interface& interface() const { return interface_; }
  Bundle inputs_from(const NamedTensors& fields) const;                             // those that the first block takes
  NamedTensors outputs_from(const Bundle& last, Mode mode = Mode::evaluate) const;  // by their names
  // The bundle that block `from` takes, in the type of a precision: floating values, but for exact inputs.
  Bundle cast(Bundle values, at::ScalarType type, size_t from = 0) const;

  // Images: [batch, channels, height, width], any memory format; that of the weights (model.layout) is copied nowhere.
  NamedTensors forward(const NamedTensors& fields, Mode mode) const;
  // Blocks [from, to).
  Bundle run(Bundle values, Mode mode, size_t from, size_t to) const;
  // `listener` is called with the index of each block before it runs, and with -1 after the last one. For recordings of
  // a run.
  void on_block(std::function<void(int64_t index)> listener) { listener_ = std::move(listener); }
  // What every batch norm does while training from now on; none: the network's own way.
  void use_batch_norm(const BatchNormRule& rule);
  // What every block computes with from now on.
  void use_kernels(spec::Kernels kernels);

  // A network of the same blocks for another thread: the weights are these very ones, each as a leaf with a gradient of
  // its own; the buffers are copies; the rule of batch norms is the same. Nothing for a network that make_network did
  // not make.
  std::optional<Network> twin() const;
  bool has_twins() const { return make_twin_ != nullptr; }
  void twins_from(std::function<Network()> make) { make_twin_ = std::move(make); }

  std::vector<Named> parameters() const;  // of all blocks, in order
  std::vector<Named> buffers() const;
  int64_t parameter_count() const;

 private:
  std::string name_;
  std::vector<std::unique_ptr<Block>> blocks_;
  at::MemoryFormat images_;
  Interface interface_;
  std::function<void(int64_t)> listener_;
  std::function<Network()> make_twin_;
};

at::MemoryFormat memory_format(spec::Layout layout);

// none: tensors of the right size and layout, with nothing written to them (on a simulated device).
enum class Values { fresh, none };

// Builds the network that the job's `model` names with freshly initialised weights from its seed (the same on every
// rank and thread count). `classes` and `image_size` must be known by now. User error with the nearest names when
// unknown.
Network make_network(const spec::Job& job, at::Device device = at::kCPU, Values values = Values::fresh);
// Of a job that has this model, image size and seed, and nothing else to say.
Network make_network(const spec::Model& model, const spec::ImageSize& image_size, int64_t seed,
                     at::Device device = at::kCPU, Values values = Values::fresh);

std::vector<std::string> network_names();
const Interface& interface_of(const std::string& network);  // user error with the nearest names when unknown

}  // namespace lockstep::model
