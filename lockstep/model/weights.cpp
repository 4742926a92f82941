// SPDX-License-Identifier: Apache-2.0
#include "lockstep/model/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <regex>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/layers.h"
#include "lockstep/weights/weights_file.h"

namespace lockstep::model {
namespace {

using base::Blame;
using base::Error;
using base::text;
using weights::Dtype;
using weights::TensorView;

constexpr std::pair<Dtype, at::ScalarType> kScalarTypes[] = {
    {Dtype::BOOL, at::kBool},  {Dtype::U8, at::kByte},       {Dtype::I8, at::kChar}, {Dtype::I16, at::kShort},
    {Dtype::F16, at::kHalf},   {Dtype::BF16, at::kBFloat16}, {Dtype::I32, at::kInt}, {Dtype::F32, at::kFloat},
    {Dtype::F64, at::kDouble}, {Dtype::I64, at::kLong}};

at::ScalarType scalar_type(const TensorView& view) {
  for (const auto& [dtype, scalar] : kScalarTypes) {
    if (dtype == view.dtype) return scalar;
  }
  throw Error(
      Blame::user,
      text("tensor '", view.name, "' has the type ", weights::dtype_name(view.dtype), ", which no network here uses"),
      "convert it to F32");
}

Dtype dtype_of(const at::Tensor& tensor) {
  for (const auto& [dtype, scalar] : kScalarTypes) {
    if (scalar == tensor.scalar_type()) return dtype;
  }
  throw Error(Blame::bug, text("no safetensors type for ", c10::toString(tensor.scalar_type())));
}

at::Tensor tensor_of(const TensorView& view) {
  at::Tensor tensor = at::empty(view.shape, at::TensorOptions().dtype(scalar_type(view)));
  if (!view.bytes.empty()) std::memcpy(tensor.data_ptr(), view.bytes.data(), view.bytes.size());
  return tensor;
}

std::string shape_words(at::IntArrayRef shape) {
  std::vector<std::string> dims;
  for (const int64_t dim : shape) dims.push_back(std::to_string(dim));
  return "[" + base::join(dims, ", ") + "]";
}

std::string first_few(const std::vector<std::string>& names) {
  constexpr size_t kMost = 6;
  std::vector<std::string> some(names.begin(), names.begin() + static_cast<int64_t>(std::min(kMost, names.size())));
  return base::join(some, ", ") + (names.size() > kMost ? text(" and ", names.size() - kMost, " more") : "");
}

// Faster and Mask R-CNN of torchvision before 0.13: a convolution had no layer of one around it.
std::string modern_rcnn_name(const std::string& name) {
  static const std::regex pyramid(R"((backbone\.fpn\.(?:inner|layer)_blocks\.\d)\.(weight|bias))");
  static const std::regex proposals(R"(rpn\.head\.conv\.(weight|bias))");
  static const std::regex masks(R"(roi_heads\.mask_head\.mask_fcn([1-4])\.(weight|bias))");
  std::smatch found;
  if (std::regex_match(name, found, pyramid)) return text(found[1].str(), ".0.", found[2].str());
  if (std::regex_match(name, found, proposals)) return text("rpn.head.conv.0.0.", found[1].str());
  if (!std::regex_match(name, found, masks)) return name;
  return text("roi_heads.mask_head.", std::stoi(found[1].str()) - 1, ".0.", found[2].str());
}

// torchvision's published DenseNet files still say "norm.1" where the network says "norm1"; a network saved from
// inside DistributedDataParallel has "module." in front.
std::string modern_name(const std::string& name) {
  static const std::regex dotted(R"((denselayer\d+\.(?:norm|conv))\.([12]\.))");
  const std::string plain = name.starts_with("module.") ? name.substr(7) : name;
  if (plain.find("denselayer") != std::string::npos) return std::regex_replace(plain, dotted, "$1$2");
  const bool rcnn = plain.starts_with("backbone.fpn.") || plain.starts_with("rpn.") || plain.starts_with("roi_heads.");
  return rcnn ? modern_rcnn_name(plain) : plain;
}

// The names that a file gives its tensors, as the network spells them.
struct FileNames {
  std::map<std::string, const TensorView*> views;
  bool is_trunk = false;  // of a classifier whose maps the network sees: whatever stands behind them stays fresh
  bool old_rcnn = false;  // of a Faster or Mask R-CNN before 0.13
};

constexpr const char* kTrunk = "backbone.body.";

// MobileNetV2's layers stand by their numbers in a detector (rcnn.cpp).
std::string without_list(const std::string& name) {
  constexpr std::string_view kList = "features.";
  return name.starts_with(kList) ? name.substr(kList.size()) : name;
}

FileNames names_of(const Network& network, const std::vector<TensorView>& tensors) {
  FileNames names;
  const auto parameters = network.parameters();
  const bool has_trunk = parameters.front().name.starts_with(kTrunk);
  names.is_trunk = has_trunk && std::none_of(tensors.begin(), tensors.end(), [](const TensorView& view) {
                     return modern_name(view.name).starts_with("backbone.");
                   });
  for (const TensorView& view : tensors) {
    const std::string name = modern_name(view.name);
    names.old_rcnn = names.old_rcnn || (has_trunk && view.name.ends_with("rpn.head.conv.weight"));
    names.views.emplace(names.is_trunk ? kTrunk + without_list(name) : name, &view);
  }
  return names;
}

bool differs_in_classes_only(const at::Tensor& tensor, const TensorView& view) {
  const at::IntArrayRef wanted = tensor.sizes();
  const at::IntArrayRef given(view.shape);
  return wanted.size() == given.size() && !wanted.empty() && wanted.slice(1) == given.slice(1);
}

struct Match {
  at::Tensor tensor;
  const TensorView* view;
};

struct Matching {
  std::vector<Match> matches;
  LoadReport report;
  bool old_rcnn = false;
};

Matching match_names(const Network& network, const std::vector<TensorView>& tensors, const std::string& source) {
  FileNames names = names_of(network, tensors);
  auto& views = names.views;
  Matching matching;
  matching.old_rcnn = names.old_rcnn;
  std::vector<std::string> missing;
  std::string mismatch;  // the first one
  const auto match = [&](const Named& named, bool classifier) {
    const auto found = views.find(named.name);
    const TensorView* view = found == views.end() ? nullptr : found->second;
    if (view) views.erase(found);
    if (view && named.tensor.sizes() == at::IntArrayRef(view->shape)) {
      matching.matches.push_back({named.tensor, view});
      matching.report.loaded.push_back(named.name);
    } else if ((classifier && (!view || differs_in_classes_only(named.tensor, *view))) ||
               (names.is_trunk && !named.name.starts_with(kTrunk))) {
      matching.report.fresh.push_back(named.name);
    } else if (!view) {
      missing.push_back(named.name);
    } else if (mismatch.empty()) {
      mismatch = text("tensor '", named.name, "' has the shape ", shape_words(view->shape), ", ", network.name(),
                      " needs ", shape_words(named.tensor.sizes()));
    }
  };
  for (const auto& block : network.blocks()) {
    const std::set<std::string> classifier(block->classifier.begin(), block->classifier.end());
    for (const Named& named : block->parameters) match(named, classifier.contains(named.name));
    for (const Named& named : block->buffers) match(named, false);
  }
  for (const auto& [name, view] : views) {
    if (!name.ends_with(".num_batches_tracked")) matching.report.ignored.push_back(name);
  }
  if (!missing.empty()) {
    throw Error(
        Blame::user,
        text(source, ": ", missing.size(), " tensors of ", network.name(), " are not in it: ", first_few(missing)),
        matching.report.ignored.empty()
            ? "is this file complete?"
            : text("are these the weights of ", network.name(), "? It has ", first_few(matching.report.ignored)));
  }
  if (!mismatch.empty()) {
    throw Error(Blame::user, text(source, ": ", mismatch),
                "use weights made with the same width, patch and image size, or leave out model.weights");
  }
  if (matching.matches.empty()) {
    throw Error(Blame::user, text(source, ": none of its tensors fits ", network.name()),
                text("are these the weights of ", network.name(), "? It has ", first_few(matching.report.ignored)));
  }
  return matching;
}

}  // namespace

LoadReport load_weights(Network& network, const base::Path& path) {
  const weights::WeightsFile file(path);
  return load_weights(network, file.tensors(), path.string());
}

LoadReport load_weights(Network& network, const std::vector<TensorView>& tensors, const std::string& source) {
  Matching matching = match_names(network, tensors, source);
  const at::NoGradGuard no_grad;
  for (Match& match : matching.matches) match.tensor.copy_(tensor_of(*match.view));
  // They were trained with batch norms that added nothing to the variance (torchvision calls overwrite_eps on them).
  if (matching.old_rcnn) {
    for (const Named& buffer : network.buffers()) {
      if (buffer.name.ends_with(".running_var")) at::Tensor(buffer.tensor).sub_(NormOptions().epsilon);
    }
  }
  return std::move(matching.report);
}

void save_weights(const Network& network, const base::Path& path, const weights::TensorMetadata& metadata) {
  std::vector<at::Tensor> kept;  // the views point into these
  std::vector<TensorView> views;
  const auto add = [&](const Named& named) {
    const at::Tensor& tensor = kept.emplace_back(named.tensor.detach().cpu().contiguous());
    const auto* data = static_cast<const std::byte*>(tensor.data_ptr());
    views.push_back({named.name, dtype_of(tensor), tensor.sizes().vec(), {data, tensor.nbytes()}});
  };
  for (const Named& named : network.parameters()) add(named);
  for (const Named& named : network.buffers()) add(named);
  weights::write_safetensors(path, views, metadata);
}

}  // namespace lockstep::model
