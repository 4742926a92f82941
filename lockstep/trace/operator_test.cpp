// SPDX-License-Identifier: Apache-2.0
#include "lockstep/trace/operator.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

namespace lockstep::trace {
namespace {

using forecast::NumberType;
using forecast::OperatorClass;

const c10::FunctionSchema& schema_of(const char* name, const char* overload = "") {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload).schema();
}

// Calls the real operator, as whoever watches it sees it.
Parts parts_of(const char* name, const char* overload, std::vector<c10::IValue> arguments) {
  const auto handle = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  Parts parts = describe_call(handle.schema(), arguments);
  handle.callBoxed(arguments);
  add_results(parts, handle.schema(), arguments);
  return parts;
}

std::vector<c10::IValue> convolution_tail(int64_t stride, int64_t padding, int64_t groups) {
  const std::vector<int64_t> one{1, 1};
  return {std::vector<int64_t>{stride, stride},
          std::vector<int64_t>{padding, padding},
          one,
          false,
          std::vector<int64_t>{0, 0},
          groups};
}

TEST(OperatorTest, AConvolutionHasItsShapeFlopsAndBytes) {
  std::vector<c10::IValue> arguments{at::zeros({2, 8, 16, 16}), at::zeros({4, 8, 3, 3}), c10::IValue()};
  for (auto& value : convolution_tail(2, 1, 1)) arguments.push_back(value);
  const Parts parts = parts_of("aten::convolution", "", arguments);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].kind, OperatorClass::convolution);
  EXPECT_EQ(parts[0].shape, (std::vector<int64_t>{2, 8, 16, 16, 4, 3, 3, 2, 1}));
  EXPECT_EQ(parts[0].flops, 2.0 * 2 * 4 * 8 * 8 * 8 * 9);
  EXPECT_EQ(parts[0].bytes, 4.0 * (2 * 8 * 16 * 16 + 4 * 8 * 9 + 2 * 4 * 8 * 8));
  EXPECT_EQ(parts[0].type, NumberType::fp32);
}

TEST(OperatorTest, ConvolutionBackwardIsTwoGradients) {
  const auto call = [](std::array<bool, 3> mask) {
    std::vector<c10::IValue> arguments{at::zeros({2, 4, 8, 8}), at::zeros({2, 4, 8, 8}), at::zeros({4, 1, 3, 3}),
                                       c10::IValue()};
    for (auto& value : convolution_tail(1, 1, 4)) arguments.push_back(value);
    arguments.push_back(c10::List<bool>({mask[0], mask[1], mask[2]}));
    return parts_of("aten::convolution_backward", "", arguments);
  };
  const Parts both = call({true, true, false});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].kind, OperatorClass::convolution_input_gradient);
  EXPECT_EQ(both[1].kind, OperatorClass::convolution_weight_gradient);
  EXPECT_EQ(both[0].flops, 2.0 * 2 * 4 * 8 * 8 * 9);  // groups divide the work
  EXPECT_EQ(both[0].flops, both[1].flops);
  EXPECT_EQ(both[0].bytes, 4.0 * (2 * 256 + 36 + 2 * 256));  // gradient, weight, its result
  EXPECT_EQ(both[1].bytes, 4.0 * (2 * 256 + 2 * 256 + 36));  // gradient, input, its result
  EXPECT_EQ(call({true, false, false}), Parts{both[0]});
  EXPECT_EQ(call({false, true, false}), Parts{both[1]});
}

TEST(OperatorTest, ProductsCountTwoFlopsAMultiplyAdd) {
  const Parts parts = parts_of("aten::addmm", "",
                               {at::zeros({5}), at::zeros({3, 4}), at::zeros({4, 5}), c10::Scalar(1), c10::Scalar(1)});
  EXPECT_EQ(parts[0].kind, OperatorClass::matmul);
  EXPECT_EQ(parts[0].shape, (std::vector<int64_t>{1, 3, 5, 4}));
  EXPECT_EQ(parts[0].flops, 2.0 * 3 * 4 * 5);
  EXPECT_EQ(parts[0].bytes, 4.0 * (5 + 12 + 20 + 15));
  const at::Tensor half = at::zeros({7, 3, 4}, at::kBFloat16);
  const Parts batched = parts_of("aten::bmm", "", {half, at::zeros({7, 4, 2}, at::kBFloat16)});
  EXPECT_EQ(batched[0].shape, (std::vector<int64_t>{7, 3, 2, 4}));
  EXPECT_EQ(batched[0].type, NumberType::bf16);
}

TEST(OperatorTest, AttentionIsTwoProductsForward) {
  const at::Tensor q = at::zeros({2, 3, 10, 8});
  const Parts parts = parts_of("aten::_scaled_dot_product_flash_attention_for_cpu", "",
                               {q, q, q, 0.0, false, c10::IValue(), c10::IValue()});
  EXPECT_EQ(parts[0].kind, OperatorClass::attention);
  EXPECT_EQ(parts[0].shape, (std::vector<int64_t>{2, 3, 10, 10, 8}));
  EXPECT_EQ(parts[0].flops, 4.0 * 2 * 3 * 10 * 10 * 8);
  EXPECT_EQ(class_of(schema_of("aten::_scaled_dot_product_flash_attention_backward")),
            OperatorClass::attention_gradient);
}

TEST(OperatorTest, CountsWhatIsReadAndWhatIsWritten) {
  EXPECT_EQ(parts_of("aten::relu", "", {at::zeros({10})})[0].bytes, 80);
  EXPECT_EQ(parts_of("aten::relu_", "", {at::zeros({10})})[0].bytes, 80);
  EXPECT_EQ(parts_of("aten::zero_", "", {at::zeros({10})})[0].bytes, 40);
  EXPECT_EQ(parts_of("aten::copy_", "", {at::zeros({10}), at::zeros({10}, at::kDouble), false})[0].bytes, 120);
  const at::Tensor expanded = at::zeros({1, 4}).expand({1000, 4});
  EXPECT_EQ(parts_of("aten::relu", "", {expanded})[0].bytes, 16 + 16000);
  const Parts fused =
      describe_call(schema_of("aten::_foreach_mul_", "Scalar"),
                    std::vector<c10::IValue>{c10::List<at::Tensor>({at::zeros({10}), at::zeros({6})}), c10::Scalar(2)});
  EXPECT_EQ(fused[0].bytes, 2 * 4 * 16);
}

TEST(OperatorTest, ViewsAndAnswersToTheHostCostTheDeviceNothing) {
  const Parts view = parts_of("aten::view", "", {at::zeros({4, 5}), std::vector<int64_t>{20}});
  EXPECT_EQ(view[0].kind, OperatorClass::view);
  EXPECT_EQ(view[0].launches, 0);
  EXPECT_EQ(view[0].bytes, 0);
  EXPECT_EQ(class_of(schema_of("aten::empty", "memory_format")), OperatorClass::view);
  EXPECT_EQ(class_of(schema_of("aten::_local_scalar_dense")), OperatorClass::host);
}

TEST(OperatorTest, KnowsTheClassesOfATrainingStep) {
  EXPECT_EQ(class_of(schema_of("aten::cudnn_batch_norm")), OperatorClass::batch_norm);
  EXPECT_EQ(class_of(schema_of("aten::native_layer_norm_backward")), OperatorClass::layer_norm_gradient);
  EXPECT_EQ(class_of(schema_of("aten::max_pool2d_with_indices_backward")), OperatorClass::pooling_gradient);
  EXPECT_EQ(class_of(schema_of("aten::_adaptive_avg_pool2d")), OperatorClass::pooling);
  EXPECT_EQ(class_of(schema_of("aten::_fused_sgd_")), OperatorClass::optimizer);
  EXPECT_EQ(class_of(schema_of("aten::gelu_backward")), OperatorClass::elementwise);
  EXPECT_EQ(class_of(schema_of("aten::_to_copy")), OperatorClass::copy);
  EXPECT_EQ(class_of(schema_of("aten::_log_softmax")), OperatorClass::softmax);
}

TEST(OperatorTest, OnlyTheLevelBelowAutogradIsWatched) {
  EXPECT_TRUE(is_composite({"aten::conv2d", ""}));
  EXPECT_TRUE(is_composite({"aten::batch_norm", ""}));
  EXPECT_TRUE(is_composite({"aten::item", ""}));
  EXPECT_FALSE(is_composite({"aten::convolution", ""}));
  EXPECT_FALSE(is_composite({"aten::addmm", ""}));
  EXPECT_FALSE(is_composite({"aten::native_batch_norm", ""}));
}

}  // namespace
}  // namespace lockstep::trace
