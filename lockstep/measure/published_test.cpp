// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/published.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/forecast/invented_device.h"

namespace lockstep::measure {
namespace {

const char* const kHeader =
    "model,task,framework,gpu,gpu_mem_gb,n_gpus,n_nodes,interconnect,precision,global_batch,per_gpu_batch,image_size,"
    "metric,value,notes,source\n";

PublishedNames some_names() {
  return parse_names(base::parse_json(R"({
    "gpus": {"Invented 1": "invented"}, "models": {"ResNet-50": "resnet50", "Mask R-CNN": "maskrcnn_resnet50_fpn"},
    "origins": [{"name": "a laboratory", "begins": ["lab/results/one", "lab/results/two"]}]})",
                                      "names.json"));
}

catalogue::Catalogue some_gpus() {
  catalogue::Catalogue gpus;
  gpus.gpus = {forecast::invented_gpu()};
  gpus.gpus[0].pcie = "PCIe 3.0 x16";
  return gpus;
}

std::vector<Published> read(const std::string& lines) {
  return read_published(base::parse_csv(kHeader + lines, "p.csv"), some_names(), some_gpus());
}

// Adds as many gigabytes as there are samples: 1.25 ms each on the invented device.
forecast::Recording add_gigabytes(const Published& row) {
  using forecast::EventKind;
  forecast::Recording recording;
  recording.operators = {{.name = "aten::add", .bytes = 1e9}, {.name = "step", .phase = forecast::Phase::update}};
  recording.operators[1].bytes = 1e9;
  recording.events.push_back({.kind = EventKind::step_begin});
  for (int64_t i = 0; i < row.batch; ++i) recording.events.push_back({.kind = EventKind::run, .id = 0});
  recording.events.push_back({.kind = EventKind::run, .id = 1});
  recording.events.push_back({.kind = EventKind::step_end});
  return recording;
}

std::vector<PublishedForecast> foretell(std::vector<Published>& rows, const std::string& calibrated = "invented") {
  auto device = forecast::invented_device();
  device.rates.id = calibrated;
  forecast::GpuFamilies families;
  families.others.name = "others";
  return forecast_published(rows, some_gpus(), families, forecast::Calibration({device}), add_gigabytes);
}

TEST(PublishedTest, ReadsWhatARowMeasured) {
  const auto rows = read(
      "ResNet-50,c,PyTorch 2,Invented 1,,8,1,PCIe3,amp16,800,100,224,img/s,4000,NHWC,here\n"
      "ResNet-50,c,PyTorch 1.0.0,Invented 1,,1,1,-,fp32,16,16,224,sec/iter,0.25,fwd+bwd 250 ms,lab/results/two/x.csv\n"
      "ResNet-50,c,Torch7,Invented 1,,1,1,-,fp32,16,16,224,sec/iter,0.25,,lab/other/x.csv\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].excluded, "");
  EXPECT_DOUBLE_EQ(rows[0].seconds(), 0.2);
  EXPECT_EQ(rows[0].id, "invented");
  EXPECT_EQ(rows[0].zoo, "resnet50");
  EXPECT_EQ(rows[0].origin, "here");
  EXPECT_TRUE(rows[0].pcie && rows[0].updates);
  EXPECT_EQ(rows[0].layout, forecast::Layout::channels_last);
  EXPECT_DOUBLE_EQ(rows[1].seconds(), 0.25);
  EXPECT_EQ(rows[1].origin, "a laboratory");
  EXPECT_EQ(rows[2].origin, "lab/other");
  EXPECT_TRUE(rows[1].python && !rows[2].python);
  EXPECT_EQ(rows[2].excluded, "");
  EXPECT_FALSE(rows[1].updates);
  EXPECT_EQ(rows[1].layout, forecast::Layout::contiguous);
}

TEST(PublishedTest, SaysWhyARowIsLeftOut) {
  const auto rows = read(
      "ResNet-50,c,TensorFlow1+XLA,Invented 1,,1,1,-,fp32,16,16,224,img/s,100,,s\n"
      "ResNet-50,c,PyTorch (DataParallel),Invented 1,,2,1,-,fp32,32,16,224,img/s,100,,s\n"
      "ResNet-50,c,PyTorch (MLPerf),Invented 1,,1,1,-,fp32,16,16,224,img/s,100,,s\n"
      "ResNet-50,c,PyTorch,Invented 1,,1,1,-,fp32,16,16,224,GB_peak,11,,s\n"
      "VGG16,c,PyTorch,Invented 1,,1,1,-,fp32,16,16,224,img/s,100,,s\n"
      "Mask R-CNN,c,PyTorch,Invented 1,,1,1,-,fp32,16,16,800x1333,img/s,100,,s\n"
      "ResNet-50,c,PyTorch,Other GPU,,1,1,-,fp32,16,16,224,img/s,100,,s\n"
      "ResNet-50,c,PyTorch,Invented 1,,1,1,-,fp32,,,224,img/s,100,,s\n"
      "ResNet-50,c,PyTorch,Invented 1,,16,2,IB,fp32,256,16,224,img/s,100,,s\n"
      "ResNet-50,c,PyTorch,Invented 1,,1,1,-,int8,16,16,224,img/s,100,,s\n");
  ASSERT_EQ(rows.size(), 10U);
  const std::vector<std::string> parts = {"compiles",  "DataParallel", "MLPerf", "GB_peak", "zoo",
                                          "detector:", "catalogue",    "batch",  "several", "precision is"};
  for (size_t i = 0; i < parts.size(); ++i) {
    EXPECT_NE(rows[i].excluded.find(parts[i]), std::string::npos) << rows[i].excluded;
  }
}

TEST(PublishedTest, ForetellsTheStepThatRan) {
  auto rows = read(
      "ResNet-50,c,PyTorch 2,Invented 1,,1,1,-,fp32,9,9,224,sec/iter,0.0125,,s\n"
      "ResNet-50,c,PyTorch 2,Invented 1,,1,1,-,fp32,10,10,224,sec/iter,0.0125,fwd+bwd,s\n");
  const auto forecasts = foretell(rows);
  ASSERT_EQ(forecasts.size(), 2U);
  for (const auto& one : forecasts) {  // nine and the optimizer's, or ten
    EXPECT_NEAR(one.ratio(), 1, 0.02);
    EXPECT_NEAR(one.roofline, 0.010, 1e-6);
    EXPECT_DOUBLE_EQ(one.bare, one.seconds);
  }
}

TEST(PublishedTest, ANetworkThatCannotBeTracedIsLeftOutWithTheReason) {
  auto rows = read("ResNet-50,c,PyTorch 2,Invented 1,,1,1,-,fp32,9,9,224,sec/iter,0.0125,,s\n");
  const auto none = forecast_published(rows, some_gpus(), {}, forecast::Calibration({forecast::invented_device()}),
                                       [](const Published&) {
                                         throw base::Error(base::Blame::user, "no kernel for aten::odd");
                                         return forecast::Recording{};
                                       });
  EXPECT_TRUE(none.empty());
  EXPECT_NE(rows[0].excluded.find("aten::odd"), std::string::npos);
}

// Two reports say that such a GPU takes twice as long: the third's rows are foretold so, and not by themselves.
TEST(PublishedTest, AnOriginIsForetoldByTheOthers) {
  auto rows = read(
      "ResNet-50,c,PyTorch 2,Invented 1,,1,1,-,fp32,9,9,224,sec/iter,0.025,,one/a\n"
      "ResNet-50,c,PyTorch 2,Invented 1,,1,1,-,fp32,19,19,224,sec/iter,0.05,,two/b\n"
      "ResNet-50,c,PyTorch 2,Invented 1,,1,1,-,fp32,39,39,224,sec/iter,0.3,,three/c\n");
  const auto forecasts = foretell(rows, "another");
  ASSERT_EQ(forecasts.size(), 3U);
  EXPECT_EQ(carried_steps(forecasts).size(), 3U);
  EXPECT_NEAR(forecasts[2].seconds / forecasts[2].bare, 2, 0.05);
  EXPECT_GT(forecasts[0].seconds / forecasts[0].bare, 2.5);  // by two/b and three/c
  EXPECT_FALSE(forecasts[2].inside());
  EXPECT_TRUE(carried_steps(foretell(rows)).empty());  // of the calibrated GPU itself
}

TEST(PublishedTest, ComparesScalingOfRowsThatDifferInGpusAlone) {
  auto rows = read(
      "ResNet-50,c,PyTorch 2,Invented 1,,1,1,-,fp32,9,9,224,img/s,720,,s\n"
      "ResNet-50,c,PyTorch 2,Invented 1,,8,1,NVLink,fp32,72,9,224,img/s,5472,,s\n"
      "ResNet-50,c,PyTorch 2,Invented 1,,8,1,NVLink,amp16,72,9,224,img/s,5472,,s\n");
  const auto forecasts = foretell(rows);
  const auto scaling = compare_scaling(forecasts);
  ASSERT_EQ(scaling.size(), 1U);
  EXPECT_NEAR(scaling[0].published, 0.95, 1e-9);
  EXPECT_LT(scaling[0].foretold, 1);
  EXPECT_GT(scaling[0].foretold, 0.97);
}

TEST(PublishedTest, TheEmbeddedNamesExist) {
  const PublishedNames names = load_names();
  const auto gpus = catalogue::load_embedded();
  for (const auto& [published, id] : names.gpus) EXPECT_EQ(gpus.gpu(id).id, id) << published;
  for (const auto& origin : names.origins) EXPECT_FALSE(origin.begins.empty()) << origin.name;
}

// Four rows of one report say no more than one of another.
TEST(PublishedTest, EveryReportCountsOnceForTheCoverage) {
  std::vector<Published> rows(5);
  std::vector<PublishedForecast> forecasts;
  std::vector<const PublishedForecast*> all;
  for (auto& row : rows) {
    row.origin = &row == &rows.back() ? "another" : "one";
    row.metric = "sec/iter";
    row.value = row.origin == "one" ? 1 : 9;
    forecasts.push_back({.row = &row, .recording = {}, .low = 0.5, .high = 2});
  }
  for (const auto& one : forecasts) all.push_back(&one);
  EXPECT_DOUBLE_EQ(coverage_by_report(all), 0.5);
  EXPECT_DOUBLE_EQ(coverage_by_report({}), 0);
}

}  // namespace
}  // namespace lockstep::measure
