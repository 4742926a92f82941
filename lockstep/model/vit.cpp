// SPDX-License-Identifier: Apache-2.0
// Vision Transformer (Dosovitskiy et al. 2020, arXiv 2010.11929) with timm's names, shapes and initial values.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/model/architecture.h"
#include "lockstep/model/attention.h"

namespace lockstep::model {
namespace {

constexpr double kEpsilon = 1e-6;

struct VitShape {
  const char* name;
  int64_t width, depth, heads;
  double mlp_ratio;
};

constexpr VitShape kVits[] = {{"tiny", 192, 12, 3, 4},   {"small", 384, 12, 6, 4},
                              {"base", 768, 12, 12, 4},  {"large", 1024, 24, 16, 4},
                              {"huge", 1280, 32, 16, 4}, {"giant", 1408, 40, 16, 48.0 / 11}};

struct VitSizes {
  int64_t width, depth, heads, patch, patches, hidden;
  double dropout, drop_path;
};

// "vit_base_patch16_224" with the overrides of `model` on top.
VitSizes vit_sizes(const Request& request) {
  const spec::Model& model = request.model;
  const std::vector<std::string> parts = base::split(model.name, '_');  // vit, size, patchN, 224
  const VitShape* shape = nullptr;
  for (const VitShape& row : kVits) {
    if (parts[1] == row.name) shape = &row;
  }
  base::ensure(shape != nullptr, "a ViT of the table");
  VitSizes sizes{};
  sizes.width = model.width > 0 ? model.width : shape->width;
  sizes.depth = model.depth > 0 ? model.depth : shape->depth;
  sizes.heads = model.heads > 0 ? model.heads : shape->heads;
  sizes.patch = model.patch > 0 ? model.patch : std::stoll(parts[2].substr(5));
  const double ratio = model.mlp_ratio > 0 ? model.mlp_ratio : shape->mlp_ratio;
  sizes.hidden = static_cast<int64_t>(static_cast<double>(sizes.width) * ratio);
  sizes.dropout = model.dropout;
  sizes.drop_path = model.drop_path;
  for (const int64_t side : {request.image_size.height, request.image_size.width}) {
    if (side % sizes.patch == 0) continue;
    throw base::Error(base::Blame::user,
                      base::text("data.image_size: ", side, " is no multiple of the patch of ", sizes.patch,
                                 " pixels of ", model.name),
                      base::text("use ", side / sizes.patch * sizes.patch, " or ",
                                 (side / sizes.patch + 1) * sizes.patch, ", or set model.patch"));
  }
  if (sizes.width % sizes.heads != 0) {
    throw base::Error(base::Blame::user,
                      base::text("model.heads: ", sizes.heads, " heads do not divide the width ", sizes.width),
                      "model.width must be a multiple of model.heads");
  }
  sizes.patches = request.image_size.pixels() / (sizes.patch * sizes.patch);
  return sizes;
}

class VitStem final : public PlainBlock {
 public:
  VitStem(Maker& maker, const VitSizes& sizes)
      : PlainBlock("stem"),
        dropout_(sizes.dropout),
        cls_token_({*this, maker, ""}, "cls_token", {1, 1, sizes.width}, Fill::normal(1e-6)),
        pos_embed_({*this, maker, ""}, "pos_embed", {1, sizes.patches + 1, sizes.width}, Fill::truncated_normal(0.02)),
        proj_({*this, maker, "patch_embed.proj."}, {.in = 3,
                                                    .out = sizes.width,
                                                    .kernel = sizes.patch,
                                                    .stride = sizes.patch,
                                                    .bias = true,
                                                    .init = ConvInit::torch_default}) {}
  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    const at::Tensor patches = proj_.patches(input);  // [batch, tokens, width]
    const at::Tensor first = cls_token_().expand({input.size(0), -1, -1});
    const at::Tensor tokens = at::cat({first, patches}, 1).add_(pos_embed_());
    return dropout(*this, tokens, dropout_, mode);
  }

 private:
  double dropout_;
  Parameter cls_token_;
  Parameter pos_embed_;
  Conv2d proj_;
};

class VitBlock final : public PlainBlock, public AttentionBlock {
 public:
  VitBlock(const std::string& name, Maker& maker, const VitSizes& sizes, double path_rate)
      : PlainBlock(name),
        heads_(sizes.heads),
        dropout_(sizes.dropout),
        path_rate_(path_rate),
        norm1_({*this, maker, name + ".norm1."}, sizes.width, kEpsilon),
        qkv_({*this, maker, name + ".attn.qkv."}, sizes.width, 3 * sizes.width, LinearInit::truncated_002),
        proj_({*this, maker, name + ".attn.proj."}, sizes.width, sizes.width, LinearInit::truncated_002),
        norm2_({*this, maker, name + ".norm2."}, sizes.width, kEpsilon),
        fc1_({*this, maker, name + ".mlp.fc1."}, sizes.width, sizes.hidden, LinearInit::truncated_002),
        fc2_({*this, maker, name + ".mlp.fc2."}, sizes.hidden, sizes.width, LinearInit::truncated_002) {}

  at::Tensor forward(const at::Tensor& input, Mode mode) override {
    if (!fuses(input)) {  // each temporary goes as soon as it was read: what was recorded on a GPU holds this to it
      const at::Tensor value = input.add(drop_path(*this, attention(norm1_(input), mode), path_rate_, mode));
      return value.add(drop_path(*this, perceptron(norm2_(value), mode), path_rate_, mode));
    }
    const auto [first, seen] = norm1_.after_sum(input, {});
    const at::Tensor mixed = drop_path(*this, attention(seen, mode), path_rate_, mode);
    const auto [value, seen_again] = norm2_.after_sum(first, mixed);
    return value.add(drop_path(*this, perceptron(seen_again, mode), path_rate_, mode));
  }

  at::Tensor attention_shares(const at::Tensor& input) const override {
    const kernel::Heads parts = heads_of(qkv_(norm1_(input)));
    const double scale = 1 / std::sqrt(static_cast<double>(parts.query.size(3)));
    return at::softmax(at::matmul(parts.query, parts.key.transpose(2, 3)) * scale, 3);
  }

 private:
  at::Tensor attention(const at::Tensor& input, Mode mode) const {
    const auto [query, key, value] = heads_of(qkv_(input));
    const at::Tensor mixed = at::scaled_dot_product_attention(query, key, value);
    const at::Tensor joined = mixed.transpose(1, 2).reshape(input.sizes());
    return dropout(*this, proj_(joined), dropout_, mode);
  }

  // Queries, keys and values: [batch, heads, tokens, head_dim] each.
  kernel::Heads heads_of(const at::Tensor& qkv) const {
    if (fuses(qkv) && kernel::takes_split_qkv(qkv, heads_)) return kernel::split_qkv(qkv, heads_);
    const int64_t size = qkv.size(2) / (3 * heads_);
    const auto parts = qkv.view({qkv.size(0), qkv.size(1), 3, heads_, size}).permute({2, 0, 3, 1, 4}).unbind(0);
    return {parts[0], parts[1], parts[2]};
  }

  at::Tensor perceptron(const at::Tensor& input, Mode mode) const {
    const at::Tensor hidden = dropout(*this, fc1_.gelu(input), dropout_, mode);
    return dropout(*this, fc2_(hidden), dropout_, mode);
  }

  int64_t heads_;
  double dropout_;
  double path_rate_;
  LayerNorm norm1_;
  Linear qkv_;
  Linear proj_;
  LayerNorm norm2_;
  Linear fc1_;
  Linear fc2_;
};

// Only the class token is read further on; the norm works by token, so the others need not pass it.
class VitPool final : public PlainBlock {
 public:
  VitPool(Maker& maker, int64_t width) : PlainBlock("pool"), norm_({*this, maker, "norm."}, width, kEpsilon) {}
  at::Tensor forward(const at::Tensor& input, Mode /*mode*/) override { return norm_(input.select(1, 0)); }

 private:
  LayerNorm norm_;
};

}  // namespace

Blocks vit_blocks(const Request& request) {
  const VitSizes sizes = vit_sizes(request);
  Blocks blocks;
  blocks.push_back(std::make_unique<VitStem>(request.maker, sizes));
  for (int64_t i = 0; i < sizes.depth; ++i) {  // the rate grows linearly with the depth
    const double rate =
        sizes.depth > 1 ? sizes.drop_path * static_cast<double>(i) / static_cast<double>(sizes.depth - 1) : 0;
    blocks.push_back(std::make_unique<VitBlock>(base::text("blocks.", i), request.maker, sizes, rate));
  }
  blocks.push_back(std::make_unique<VitPool>(request.maker, sizes.width));
  blocks.push_back(std::make_unique<Head>(request, sizes.width, HeadOptions{"head.", 0, LinearInit::truncated_002}));
  return blocks;
}

}  // namespace lockstep::model
