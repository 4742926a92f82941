// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/served_model.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/serving/small_model.h"

namespace lockstep::serving {
namespace {

TEST(ServedModelTest, PredictsImagesAndNumbers) {
  const auto model = small_model();
  const EncodedRow bright = model->encode_image(grey_image(250));
  const EncodedRow dark = model->encode_image(grey_image(5));
  const auto answers = model->run({{&bright, 1}, {&dark, 2}}, false);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].record.dump(-1), R"({"classes":[{"name":"bright","probability":0.75}]})");
  EXPECT_EQ(answers[1].record.at("classes").size(), 2U);
  EXPECT_EQ(answers[1].outputs, (std::vector<std::vector<float>>{{0.75, 0.25}}));
  const std::vector<float> pixels(3 * 4 * 4, 1.0F);
  const EncodedRow numbers = model->encode_numbers(pixels);
  EXPECT_EQ(model->run({{&numbers, 1}}, true)[0].outputs[0][1], 0.75F);
}

TEST(ServedModelTest, NumbersAreInTheOrderOfTheProtocol) {
  std::vector<float> seen;
  const auto model = small_model("1", [&](const loader::Batch& batch) {
    const float* values = batch.field("image").values<float>();
    seen.assign(values, values + batch.field("image").field.count());
    return std::vector<OutputRows>{{"probabilities", 2, {0, 1}}};
  });
  std::vector<float> pixels(3 * 4 * 4);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i);
  const EncodedRow row = model->encode_numbers(pixels);
  model->run({{&row, 1}}, true);
  EXPECT_EQ(seen[0], 0);
  EXPECT_EQ(seen[1], 16) << "the second channel of the first pixel";
  EXPECT_EQ(seen[3], 1) << "the first channel of the second pixel";
}

TEST(ServedModelTest, SaysWhatItTakesAndGives) {
  EXPECT_EQ(small_model()->metadata().dump(-1),
            R"({"name":"small","versions":["1"],"platform":"lockstep",)"
            R"("inputs":[{"name":"image","datatype":"FP32","shape":[-1,3,4,4]}],)"
            R"("outputs":[{"name":"probabilities","datatype":"FP32","shape":[-1,2]},)"
            R"({"name":"record","datatype":"BYTES","shape":[-1]}]})");
  EXPECT_EQ(small_model()->description().at("task").as_string(), "classify");
}

// A strip of radar frames is decoded into a field of another name: there is no image whose numbers could be sent.
TEST(ServedModelTest, TakesFramesOfARadarAsAFileAlone) {
  ModelOptions options;
  options.job.task = spec::Task::nowcast;
  options.job.data.image_size = 4;
  options.job.nowcast.inputs = 2;
  options.job.nowcast.outputs = 1;
  options.task = task::make_task(options.job, {});
  const ServedModel model(options, [](const loader::Batch& batch) {
    return std::vector<OutputRows>{{"forecast", 16, std::vector<float>(static_cast<size_t>(16 * batch.size()))}};
  });
  EXPECT_FALSE(model.takes_numbers());
  EXPECT_EQ(model.metadata().at("inputs").dump(-1), R"([{"name":"image","datatype":"BYTES","shape":[-1]}])");
  EXPECT_THROW(model.encode_image(grey_image(9)), base::Error);
}

TEST(ServedModelTest, RefusesWhatIsNoImageAndBombs) {
  const auto model = small_model();
  EXPECT_THROW(model->encode_image("hello"), base::Error);
  EXPECT_THROW(model->encode_image(""), base::Error);
  EXPECT_THROW(model->encode_image(grey_image(9).substr(0, 60)), base::Error);
  // 30,000 x 30,000 pixels are promised in a few bytes.
  std::string bomb = grey_image(9);
  for (const size_t at : {16, 20}) bomb.replace(at, 4, std::string("\0\0\x75\x30", 4));
  EXPECT_THROW(model->encode_image(bomb), base::Error);
}

TEST(ServedModelTest, GivesTheOutputsThatAreAskedFor) {
  const auto model = small_model();
  const EncodedRow row = model->encode_image(grey_image(250));
  const auto answers = model->run({{&row, 1}}, false);
  EXPECT_EQ(model->output_tensors(answers, {}).size(), 2U);
  const auto one = model->output_tensors(answers, {.outputs = {{"record"}}});
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].words.size(), 1U);
  EXPECT_THROW(model->output_tensors(answers, {.outputs = {{"logits"}}}), base::Error);
}

}  // namespace
}  // namespace lockstep::serving
