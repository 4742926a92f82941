// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/export/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "lockstep/base/error.h"
#include "lockstep/training/small_run.h"
#include "lockstep/weights/safetensors.h"

namespace lockstep::verbs::exporting {
namespace {

using testing::HasSubstr;

TEST(ExportTest, AFileSaysHowItIsToBeUsed) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const ExportOptions options{small.root() / "a.onnx", false, true, "CC0"};
  const Exported exported = export_network(trained, options);
  EXPECT_EQ(std::filesystem::file_size(exported.file), static_cast<uint64_t>(exported.bytes));
  EXPECT_EQ(exported.input, "image: uint8 [batch, 16, 16, 3]");
  EXPECT_EQ(exported.outputs, "output: float32 [batch, 2]");
  std::map<std::string, std::string> said;
  for (const auto& [key, value] : metadata_of(trained, options)) said[key] = value;
  EXPECT_EQ(said["lockstep.classes"], R"(["green thing","red"])");
  EXPECT_EQ(said["lockstep.activation"], "softmax");
  EXPECT_EQ(said["lockstep.licence"], "CC0");
  EXPECT_EQ(said["lockstep.image_size"], "16");
  EXPECT_THAT(base::read_file(exported.file), HasSubstr("green thing"));
}

TEST(ExportTest, WeightsAloneAreReadAgain) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const Exported whole = export_network(trained, {small.root() / "a.safetensors"});
  const weights::SafetensorsFile file(whole.file);
  EXPECT_EQ(file.metadata().at("classes"), R"(["green thing","red"])");
  EXPECT_EQ(static_cast<int64_t>(file.tensors().size()), whole.tensors);
  const Exported half = export_network(trained, {small.root() / "b.safetensors", true});
  EXPECT_LT(half.bytes, whole.bytes);
  EXPECT_THROW(export_network(trained, {small.root() / "c.safetensors", false, true}), base::Error);
  EXPECT_EQ(training::load_trained({whole.file, small.run() / "job.json"}).classes, small.classes());
}

TEST(ExportTest, TheKindOfFileFollowsFromItsName) {
  EXPECT_EQ(file_format("a/b.onnx"), FileFormat::onnx);
  EXPECT_EQ(file_format("b.safetensors"), FileFormat::safetensors);
  EXPECT_THROW(file_format("b.pt"), base::Error);
}

}  // namespace
}  // namespace lockstep::verbs::exporting
