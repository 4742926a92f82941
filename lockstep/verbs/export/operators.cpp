// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs::exporting {
namespace {

using base::text;
using Attributes = std::vector<onnx::Attribute>;
using Translation = std::string (*)(const PairedCall&, Graph&);  // gives the value of the one output

at::ScalarType output_type(const PairedCall& call) {
  return call.outputs().front().scalar_type();
}

// A dim counted from the end, counted from the beginning.
int64_t from_front(int64_t dim, int64_t dims) {
  return dim < 0 ? dim + dims : dim;
}

std::vector<int64_t> twice(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> both = sizes;
  both.insert(both.end(), sizes.begin(), sizes.end());
  return both;
}

template <const char* const& kOp>
std::string unary(const PairedCall& call, Graph& graph) {
  return graph.add(kOp, {graph.value(call.tensor(0))});
}
constexpr const char* kRelu = "Relu";
constexpr const char* kFloor = "Floor";
constexpr const char* kSigmoid = "Sigmoid";
constexpr const char* kTanh = "Tanh";

std::string same(const PairedCall& call, Graph& graph) {
  return graph.value_as(call.tensor(0), output_type(call));
}

std::string dropout(const PairedCall& call, Graph& graph) {
  base::ensure(!call.flag(2), "dropout is off in an exported network");
  return graph.value(call.tensor(0));
}

std::string conv(const PairedCall& call, Graph& graph) {
  std::vector<std::string> inputs = {graph.value(call.tensor(0)), graph.value(call.tensor(1))};
  if (const at::Tensor bias = call.tensor(2); bias.defined()) inputs.push_back(graph.value(bias));
  return graph.add("Conv", inputs,
                   {{"dilations", call.two(5)},
                    {"group", call.integer(6)},
                    {"kernel_shape", call.tensor(1).sizes().slice(2).vec()},
                    {"pads", twice(call.two(4))},
                    {"strides", call.two(3)}});
}

std::string conv_transpose(const PairedCall& call, Graph& graph) {
  std::vector<std::string> inputs = {graph.value(call.tensor(0)), graph.value(call.tensor(1))};
  if (const at::Tensor bias = call.tensor(2); bias.defined()) inputs.push_back(graph.value(bias));
  return graph.add("ConvTranspose", inputs,
                   {{"dilations", call.two(7)},
                    {"group", call.integer(6)},
                    {"kernel_shape", call.tensor(1).sizes().slice(2).vec()},
                    {"output_padding", call.two(5)},
                    {"pads", twice(call.two(4))},
                    {"strides", call.two(3)}});
}

// By the size, never by a factor: libtorch's rule for nearest pixels is this one whatever the two sizes are.
std::string nearest(const PairedCall& call, Graph& graph) {
  return graph.add("Resize", {graph.value(call.tensor(0)), "", "", graph.integers(call.integers(1))},
                   {{"axes", std::vector<int64_t>{2, 3}},
                    {"coordinate_transformation_mode", std::string("asymmetric")},
                    {"mode", std::string("nearest")},
                    {"nearest_mode", std::string("floor")}});
}

std::string batch_norm(const PairedCall& call, Graph& graph) {
  base::ensure(!call.flag(5), "batch norms of an exported network use their own statistics");
  std::vector<std::string> inputs;
  for (size_t i = 0; i < 5; ++i) inputs.push_back(graph.value(call.tensor(i)));
  return graph.add("BatchNormalization", inputs, {{"epsilon", static_cast<float>(call.number(7))}});
}

std::string layer_norm(const PairedCall& call, Graph& graph) {
  const auto dims = static_cast<int64_t>(call.integers(1).size());
  return graph.add("LayerNormalization",
                   {graph.value(call.tensor(0)), graph.value(call.tensor(2)), graph.value(call.tensor(3))},
                   {{"axis", -dims}, {"epsilon", static_cast<float>(call.number(4))}});
}

std::string gelu(const PairedCall& call, Graph& graph) {
  return graph.add("Gelu", {graph.value(call.tensor(0))}, {{"approximate", std::string("none")}});
}

// Clip leaves a bound that is left out alone.
std::string clip(const PairedCall& call, Graph& graph) {
  const at::ScalarType type = output_type(call);
  const auto bound = [&](size_t i) { return call.has(i) ? graph.number(call.number(i), type) : std::string(); };
  const std::string low = bound(1), high = bound(2);
  return graph.add("Clip", {graph.value(call.tensor(0)), low, high});
}

Attributes pool_attributes(const PairedCall& call, size_t ceil_mode) {
  const auto kernel = call.two(1);
  auto strides = call.two(2);
  if (strides.empty()) strides = kernel;
  return {{"ceil_mode", int64_t{call.flag(ceil_mode)}},
          {"kernel_shape", kernel},
          {"pads", twice(call.two(3))},
          {"strides", strides}};
}

std::string max_pool(const PairedCall& call, Graph& graph) {
  Attributes attributes = pool_attributes(call, 5);
  attributes.push_back({"dilations", call.two(4)});
  return graph.add("MaxPool", {graph.value(call.tensor(0))}, attributes);
}

std::string avg_pool(const PairedCall& call, Graph& graph) {
  base::ensure(!call.has(6), "an average counts its own pixels");
  Attributes attributes = pool_attributes(call, 4);
  attributes.push_back({"count_include_pad", int64_t{call.flag(5)}});
  return graph.add("AveragePool", {graph.value(call.tensor(0))}, attributes);
}

// Of mean.dim and sum.dim_IntList: input, dims, keepdim.
std::string reduce(const PairedCall& call, Graph& graph) {
  const char* op = call.name() == "aten::mean" ? "ReduceMean" : "ReduceSum";
  return graph.add(op, {graph.value(call.tensor(0)), graph.integers(call.integers(1))},
                   {{"keepdims", int64_t{call.flag(2)}}});
}

std::string linear(const PairedCall& call, Graph& graph) {
  const at::Tensor input = call.tensor(0), bias = call.tensor(2);
  const std::string weight = graph.value(call.tensor(1));
  if (input.dim() == 2) {
    std::vector<std::string> inputs = {graph.value(input), weight};
    if (bias.defined()) inputs.push_back(graph.value(bias));
    return graph.add("Gemm", inputs, {{"transB", int64_t{1}}});
  }
  const std::string turned = graph.add("Transpose", {weight}, {{"perm", std::vector<int64_t>{1, 0}}});
  const std::string product = graph.add("MatMul", {graph.value(input), turned});
  return bias.defined() ? graph.add("Add", {product, graph.value(bias)}) : product;
}

// softmax(q k^T / sqrt(width)) v; ONNX has it as one operator only from opset 23 on.
std::string attention(const PairedCall& call, Graph& graph) {
  base::ensure(!call.tensor(3).defined() && !call.flag(5) && !call.flag(7), "attention looks at everything");
  const at::Tensor query = call.tensor(0);
  const int64_t dims = query.dim();
  const double scale = call.has(6) ? call.number(6) : 1 / std::sqrt(static_cast<double>(query.size(-1)));
  std::vector<int64_t> turn(static_cast<size_t>(dims));
  std::iota(turn.begin(), turn.end(), 0);
  std::swap(turn[turn.size() - 1], turn[turn.size() - 2]);
  const std::string scaled = graph.add("Mul", {graph.value(query), graph.number(scale, query.scalar_type())});
  const std::string keys = graph.add("Transpose", {graph.value(call.tensor(1))}, {{"perm", turn}});
  const std::string shares = graph.add("Softmax", {graph.add("MatMul", {scaled, keys})}, {{"axis", int64_t{-1}}});
  return graph.add("MatMul", {shares, graph.value(call.tensor(2))});
}

// One size of it may follow the batch: -1 stands for that one.
std::string reshape(const PairedCall& call, Graph& graph) {
  const Sizes sizes = call.output_sizes();
  const auto varying = std::count_if(sizes.begin(), sizes.end(), [](const Size& size) { return size.varies(); });
  std::vector<int64_t> plain;
  plain.reserve(sizes.size());
  for (const Size& size : sizes) plain.push_back(size.varies() ? -1 : size.fixed);
  return graph.add("Reshape", {graph.value(call.tensor(0)), varying > 1 ? graph.shape(sizes) : graph.integers(plain)});
}

std::string transpose(const PairedCall& call, Graph& graph) {
  const at::Tensor input = call.tensor(0);
  std::vector<int64_t> order(static_cast<size_t>(input.dim()));
  std::iota(order.begin(), order.end(), 0);
  if (call.name() == "aten::permute") {
    order = call.integers(1);
    for (int64_t& dim : order) dim = from_front(dim, input.dim());
  } else {
    const auto place = [&](size_t i) { return static_cast<size_t>(from_front(call.integer(i), input.dim())); };
    std::swap(order[place(1)], order[place(2)]);
  }
  return graph.add("Transpose", {graph.value(input)}, {{"perm", order}});
}

// A size of 1 leaves what is there.
std::string expand(const PairedCall& call, Graph& graph) {
  Sizes sizes = call.output_sizes();
  const at::Tensor input = call.tensor(0), output = call.outputs().front();
  const int64_t ahead = output.dim() - input.dim();
  for (int64_t i = ahead; i < output.dim(); ++i) {
    if (input.size(i - ahead) == output.size(i)) sizes[static_cast<size_t>(i)] = {1, 0};
  }
  return graph.add("Expand", {graph.value(input), graph.shape(sizes)});
}

std::string select(const PairedCall& call, Graph& graph) {
  const std::string index = graph.number(static_cast<double>(call.integer(2)), at::kLong);
  return graph.add("Gather", {graph.value(call.tensor(0)), index}, {{"axis", call.integer(1)}});
}

// Of narrow: where it ends. Both ends may be multiples of the batch: maps of several times lie one after the other.
Size narrow_end(const Size& start, const Size& length) {
  base::ensure(start.varies() == length.varies() || start.fixed == 0, "both ends of a part follow the batch, or none");
  return {start.fixed + length.fixed, start.per_batch + length.per_batch};
}

std::string slice(const PairedCall& call, Graph& graph) {
  const bool narrow = call.name() == "aten::narrow";
  const Size start = call.has(2) ? call.size(2) : Size{};
  Size end = call.has(3) ? call.size(3) : Size{std::numeric_limits<int64_t>::max(), 0};
  if (narrow) end = narrow_end(start, end);
  const int64_t step = narrow ? 1 : call.integer(4);
  return graph.add("Slice", {graph.value(call.tensor(0)), graph.shape({start}), graph.shape({end}),
                             graph.integers({call.integer(1)}), graph.integers({step})});
}

std::string concat(const PairedCall& call, Graph& graph) {
  const bool stacks = call.name() == "aten::stack";
  const int64_t dim = from_front(call.integer(1), call.outputs().front().dim());
  std::vector<std::string> inputs;
  for (const at::Tensor& tensor : call.tensors(0)) {
    const std::string value = graph.value_as(tensor, output_type(call));
    inputs.push_back(stacks ? graph.add("Unsqueeze", {value, graph.integers({dim})}) : value);
  }
  return graph.add("Concat", inputs, {{"axis", dim}});
}

// Pairs of (before, after), the last dim first.
std::string pad(const PairedCall& call, Graph& graph) {
  const auto given = call.integers(1);
  const at::Tensor input = call.tensor(0);
  const auto dims = static_cast<size_t>(input.dim());
  std::vector<int64_t> pads(2 * dims, 0);
  for (size_t i = 0; i < given.size() / 2; ++i) {
    pads[dims - 1 - i] = given[2 * i];
    pads[2 * dims - 1 - i] = given[2 * i + 1];
  }
  return graph.add("Pad", {graph.value(input), graph.integers(pads), graph.number(call.number(2), output_type(call))});
}

std::string arithmetic(const PairedCall& call, Graph& graph) {
  static const std::map<std::string_view, const char*> kOps = {
      {"aten::add", "Add"}, {"aten::add_", "Add"}, {"aten::sub", "Sub"}, {"aten::sub_", "Sub"}, {"aten::rsub", "Sub"},
      {"aten::mul", "Mul"}, {"aten::mul_", "Mul"}, {"aten::div", "Div"}, {"aten::div_", "Div"}, {"aten::eq", "Equal"}};
  const char* op = kOps.at(call.name());
  const bool scaled = op == std::string_view("Add") || op == std::string_view("Sub");
  base::ensure(!scaled || !call.has(2) || call.number(2) == 1, "sums are exported without a factor");
  const at::ScalarType type = call.name() == "aten::eq" ? call.tensor(0).scalar_type() : output_type(call);
  const std::string left = graph.value_as(call.tensor(0), type);
  const std::string right =
      call.is_tensor(1) ? graph.value_as(call.tensor(1), type) : graph.number(call.number(1), type);
  return call.name() == "aten::rsub" ? graph.add(op, {right, left}) : graph.add(op, {left, right});
}

// input + value x left x right
std::string addcmul(const PairedCall& call, Graph& graph) {
  base::ensure(!call.has(3) || call.number(3) == 1, "products are added without a factor");
  const at::ScalarType type = output_type(call);
  const std::string product =
      graph.add("Mul", {graph.value_as(call.tensor(1), type), graph.value_as(call.tensor(2), type)});
  return graph.add("Add", {graph.value_as(call.tensor(0), type), product});
}

// All of a tensor is replaced.
std::string copy(const PairedCall& call, Graph& graph) {
  base::ensure(call.tensor(0).sizes() == call.tensor(1).sizes(), "what is copied has the shape of its place");
  return graph.value_as(call.tensor(1), output_type(call));
}

std::string where(const PairedCall& call, Graph& graph) {
  const at::ScalarType type = output_type(call);
  return graph.add("Where", {graph.value(call.tensor(0)), graph.value_as(call.tensor(1), type),
                             graph.value_as(call.tensor(2), type)});
}

// Of zeros and zeros_like; of empty and empty_like, which a fill or a copy follows; of that fill.
std::string filled(const PairedCall& call, Graph& graph) {
  const double value = call.name() == "aten::fill_" ? call.number(1) : 0;
  return graph.add("Expand", {graph.number(value, output_type(call)), graph.shape(call.output_sizes())});
}

std::string embedding(const PairedCall& call, Graph& graph) {
  return graph.add("Gather", {graph.value(call.tensor(0)), graph.value(call.tensor(1))}, {{"axis", int64_t{0}}});
}

// 0, 1, ... up to a multiple of the batch.
std::string arange(const PairedCall& call, Graph& graph) {
  const Size end = call.size(0);
  base::ensure(end.varies(), "a range that does not follow the batch is a constant");
  const std::string limit = graph.add("Reshape", {graph.shape({end}), graph.integers({})});
  std::string range = graph.add("Range", {graph.number(0, at::kLong), limit, graph.number(1, at::kLong)});
  if (output_type(call) == at::kLong) return range;
  return graph.add("Cast", {range}, {{"to", static_cast<int64_t>(type_of(output_type(call)))}});
}

const std::map<std::string_view, Translation>& translations() {
  static const std::map<std::string_view, Translation> table = {
      {"aten::conv2d", conv},
      {"aten::conv_transpose2d", conv_transpose},
      {"aten::upsample_nearest2d", nearest},
      {"aten::batch_norm", batch_norm},
      {"aten::layer_norm", layer_norm},
      {"aten::linear", linear},
      {"aten::scaled_dot_product_attention", attention},
      {"aten::relu", unary<kRelu>},
      {"aten::relu_", unary<kRelu>},
      {"aten::floor", unary<kFloor>},
      {"aten::sigmoid", unary<kSigmoid>},
      {"aten::tanh", unary<kTanh>},
      {"aten::gelu", gelu},
      {"aten::hardtanh", clip},
      {"aten::hardtanh_", clip},
      {"aten::clamp", clip},
      {"aten::max_pool2d", max_pool},
      {"aten::avg_pool2d", avg_pool},
      {"aten::mean", reduce},
      {"aten::sum", reduce},
      {"aten::view", reshape},
      {"aten::reshape", reshape},
      {"aten::flatten", reshape},
      {"aten::unsqueeze", reshape},
      {"aten::squeeze", reshape},
      {"aten::permute", transpose},
      {"aten::transpose", transpose},
      {"aten::expand", expand},
      {"aten::select", select},
      {"aten::narrow", slice},
      {"aten::slice", slice},
      {"aten::cat", concat},
      {"aten::stack", concat},
      {"aten::constant_pad_nd", pad},
      {"aten::add", arithmetic},
      {"aten::add_", arithmetic},
      {"aten::sub", arithmetic},
      {"aten::sub_", arithmetic},
      {"aten::rsub", arithmetic},
      {"aten::mul", arithmetic},
      {"aten::mul_", arithmetic},
      {"aten::div", arithmetic},
      {"aten::div_", arithmetic},
      {"aten::eq", arithmetic},
      {"aten::addcmul", addcmul},
      {"aten::copy_", copy},
      {"aten::where", where},
      {"aten::zeros", filled},
      {"aten::zero_", filled},
      {"aten::zeros_like", filled},
      {"aten::empty", filled},
      {"aten::empty_like", filled},
      {"aten::fill_", filled},
      {"aten::embedding", embedding},
      {"aten::arange", arange},
      {"aten::to", same},
      {"aten::contiguous", same},
      {"aten::clone", same},
      {"aten::alias", same},
      {"aten::detach", same},
      {"aten::dropout", dropout},
  };
  return table;
}

// One value of the list for each index of the dim.
void unbind(const PairedCall& call, Graph& graph) {
  const auto outputs = call.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string index = graph.number(static_cast<double>(i), at::kLong);
    graph.bind(outputs[i], graph.add("Gather", {graph.value(call.tensor(0)), index}, {{"axis", call.integer(1)}}));
  }
}

}  // namespace

void translate(const PairedCall& call, Graph& graph) {
  const auto inputs = call.all_inputs();
  const bool varies = std::any_of(inputs.begin(), inputs.end(), [&](const at::Tensor& t) { return graph.varies(t); });
  if (!varies && !call.output_varies()) return;
  if (call.name() == "aten::unbind") return unbind(call, graph);
  const auto found = translations().find(call.name());
  if (found == translations().end()) {
    throw base::Error(base::Blame::bug, text("export has no ONNX operator for ", call.name()));
  }
  const std::string value = found->second(call, graph);
  const at::Tensor output = call.outputs().front();
  if (call.is_in_place()) graph.changed(output);
  graph.bind(output, value);
}

}  // namespace lockstep::verbs::exporting
