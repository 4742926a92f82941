// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/snapshot.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/run/saved_tensors.h"

namespace lockstep::model {
namespace {

using base::Blame;
using base::Error;
using base::text;

struct TypePair {
  at::ScalarType torch;
  weights::Dtype file;
};
constexpr TypePair kTypes[] = {{at::kFloat, weights::Dtype::F32},
                               {at::kDouble, weights::Dtype::F64},
                               {at::kLong, weights::Dtype::I64},
                               {at::kBFloat16, weights::Dtype::BF16}};

weights::Dtype file_type(at::ScalarType type) {
  for (const auto& pair : kTypes) {
    if (pair.torch == type) return pair.file;
  }
  throw Error(Blame::bug, text("no file type for ", c10::toString(type)));
}

at::ScalarType torch_type(weights::Dtype type, const std::string& source) {
  for (const auto& pair : kTypes) {
    if (pair.file == type) return pair.torch;
  }
  throw Error(Blame::user, text(source, ": unexpected type ", weights::dtype_name(type)),
              "the file is not one of ours");
}

weights::TensorView view_of(const std::string& name, const at::Tensor& tensor) {
  return {name,
          file_type(tensor.scalar_type()),
          tensor.sizes().vec(),
          {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

// Contiguous, like `tensor` otherwise. Copies from a GPU are twice as fast, and leave it alone, from pinned memory.
at::Tensor host_memory_for(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).pinned_memory(tensor.is_cuda()));
}

}  // namespace

run::CheckpointPart HostCopy::part(const std::string& name, const std::vector<Named>& tensors,
                                   const weights::TensorMetadata& metadata) {
  auto& copies = kept_[name];
  copies.resize(tensors.size());
  std::vector<weights::TensorView> views;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const at::Tensor original = tensors[i].tensor.detach();
    at::Tensor& copy = copies[i];
    if (!copy.defined() || copy.sizes() != original.sizes() || copy.scalar_type() != original.scalar_type()) {
      copy = host_memory_for(original);
    }
    copy.copy_(original);
    views.push_back(view_of(tensors[i].name, copy));
  }
  return run::safetensors_part(name, views, metadata);
}

std::string write_tensors(const base::Path& path, const std::vector<Named>& tensors,
                          const weights::TensorMetadata& metadata) {
  std::vector<at::Tensor> copies;
  std::vector<weights::TensorView> views;
  for (const auto& entry : tensors) {
    copies.push_back(entry.tensor.detach().to(at::kCPU).contiguous());
    views.push_back(view_of(entry.name, copies.back()));
  }
  weights::write_safetensors(path, views, metadata);
  return base::sha256_of_file(path);
}

std::vector<Named> read_tensors(const base::Path& checkpoint, const std::string& file) {
  const run::SavedTensors saved(checkpoint, file);
  std::vector<Named> all;
  for (size_t i = 0; i < saved.entries().size(); ++i) {
    const auto& entry = saved.entries()[i];
    at::Tensor tensor = at::empty(entry.shape, torch_type(entry.dtype, text(checkpoint.string(), "/", file)));
    saved.read(i, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    all.push_back({entry.name, tensor});
  }
  return all;
}

void restore_tensors(const base::Path& checkpoint, const std::string& file, const std::vector<Named>& into) {
  const auto saved = read_tensors(checkpoint, file);
  for (const auto& target : into) {
    const auto found =
        std::find_if(saved.begin(), saved.end(), [&](const auto& entry) { return entry.name == target.name; });
    if (found == saved.end() || found->tensor.sizes() != target.tensor.sizes()) {
      throw Error(Blame::user, text(checkpoint.string(), ": ", file, " has no fitting '", target.name, "'"),
                  "it belongs to another model: choose another run folder with --run");
    }
    target.tensor.detach().copy_(found->tensor);
  }
}

namespace {

// Which of a checkpoint's tensors `path`, its folder or a file in it, stands for.
std::string kind_of_weights(const base::Path& path, const base::Path& checkpoint) {
  if (checkpoint == path) return std::filesystem::exists(path / "ema.safetensors") ? "ema" : "weights";
  std::string kind = path.stem().string();
  if (kind == "weights" || kind == "ema") return kind;
  throw Error(Blame::user, text(path.string(), ": this file of a checkpoint does not have its weights"),
              text("give the folder: ", checkpoint.string()));
}

}  // namespace

LoadReport load_weights_from(Network& network, const base::Path& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  const base::Path checkpoint = is_folder ? path : path.parent_path();
  if (!run::is_checkpoint(checkpoint)) {
    if (!is_folder) return load_weights(network, path);
    throw Error(Blame::user, text(path.string(), ": this folder is not a checkpoint"),
                "give a file of weights, or a checkpoint of a run: RUN/checkpoints/step-...");
  }
  const std::string kind = kind_of_weights(path, checkpoint);
  if (const std::string why = run::damage(checkpoint); !why.empty()) {
    throw Error(Blame::user, text(checkpoint.string(), ": this checkpoint is damaged: ", why),
                text("take another one: ls ", base::shell_path(checkpoint.parent_path().string())));
  }
  const run::SavedTensors saved(checkpoint, kind);
  std::vector<std::vector<std::byte>> memory;
  std::vector<weights::TensorView> views;
  for (size_t i = 0; i < saved.entries().size(); ++i) {
    const auto& entry = saved.entries()[i];
    auto& bytes = memory.emplace_back(weights::tensor_bytes(entry.dtype, entry.shape).value());
    saved.read(i, bytes);
    views.push_back({entry.name, entry.dtype, entry.shape, bytes});
  }
  return load_weights(network, views, path.string());
}

std::string name_of_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return text(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

std::string tensors_sha256(std::vector<Named> tensors, const std::string& more) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  base::Sha256 hash;
  for (const auto& entry : tensors) {
    const at::Tensor tensor = entry.tensor.detach().to(at::kCPU).contiguous();
    const weights::TensorView view = view_of(entry.name, tensor);
    hash.update(text(view.name, " ", weights::dtype_name(view.dtype)));
    for (const int64_t size : view.shape) hash.update(text(" ", size));
    hash.update(view.bytes);
  }
  hash.update(more);
  return hash.hex();
}

std::vector<Named> all_tensors(const Network& network) {
  auto all = network.parameters();
  const auto buffers = network.buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  return all;
}

}  // namespace lockstep::model
