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
#include "lockstep/spec/job.h"

namespace lockstep::model {

struct Named {
  std::string name;  // as torchvision or timm spells it: "layer1.0.conv1.weight"
  at::Tensor tensor;
};

enum class Mode { train, evaluate };

// One named stretch of a network: the unit of freezing, recomputation, gathering, heat maps and per-layer planning.
class Block {
 public:
  explicit Block(std::string name) : name_(std::move(name)) {}
  virtual ~Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  const std::string& name() const { return name_; }
  virtual at::Tensor forward(const at::Tensor& input, Mode mode) = 0;
  // Auxiliary logits of the last training-mode forward (GoogLeNet); empty elsewhere. Taking them clears them.
  virtual std::vector<at::Tensor> take_auxiliary() { return {}; }

  // In the order of the reference implementation. forward() reads the tensors from here each time, never from a copy
  // taken earlier: the step puts 16-bit casts in their place for the length of one pass (precision bf16).
  // Convolution weights lie in the order of model.layout, channels_last unless asked otherwise (ResNet-18's step on a
  // CPU: 1.98 s against 2.25 s): call contiguous() before reading their bytes.
  std::vector<Named> parameters;
  std::vector<Named> buffers;           // batch-norm statistics; saved with the weights, not trained
  std::vector<std::string> classifier;  // parameters whose first dimension is the class count
  std::optional<at::Generator> random;  // dropout draws from it; none: from libtorch's own, as everybody in the process
  BatchNormRule batch_norm;             // of its batch norms while training; none: plain_batch_norm

 private:
  std::string name_;
};

struct Output {
  at::Tensor logits;                  // [batch, classes]
  std::vector<at::Tensor> auxiliary;  // likewise, each
};

// Stem, ordered named blocks, head: blocks().front() is "stem", blocks().back() is "head".
class Network {
 public:
  Network(std::string name, std::vector<std::unique_ptr<Block>> blocks,
          at::MemoryFormat images = at::MemoryFormat::ChannelsLast);
  const std::string& name() const { return name_; }
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }
  size_t index_of(const std::string& block) const;  // user error with the nearest names

  // images: [batch, 3, size, size], any memory format; that of the weights (model.layout) is copied nowhere. Runs
  // blocks [from, to).
  Output forward(const at::Tensor& images, Mode mode) const;
  at::Tensor run(at::Tensor value, Mode mode, size_t from, size_t to) const;
  // `listener` hears the index of each block before it runs, and -1 behind the last one. For who records a run.
  void on_block(std::function<void(int64_t index)> listener) { listener_ = std::move(listener); }
  // What every batch norm does while training from now on; none: the network's own way.
  void use_batch_norm(const BatchNormRule& rule);

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
  std::function<void(int64_t)> listener_;
  std::function<Network()> make_twin_;
};

at::MemoryFormat memory_format(spec::Layout layout);

// none: tensors of the right size and layout, with nothing written to them (on a simulated device).
enum class Values { fresh, none };

// Builds the network that `model` names with freshly initialised weights from `seed` (the same on every rank and
// thread count). `classes` and `image_size` must be known by now. User error with the nearest names when unknown.
Network make_network(const spec::Model& model, int64_t image_size, int64_t seed, at::Device device = at::kCPU,
                     Values values = Values::fresh);

std::vector<std::string> network_names();

}  // namespace lockstep::model
