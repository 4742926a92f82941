// SPDX-License-Identifier: Apache-2.0
#include "lockstep/task/instances_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/task/objects.h"

namespace lockstep::task {
namespace {

using testing::HasSubstr;

spec::Job small_instances(const std::string& network = "maskrcnn_resnet18_fpn") {
  spec::Job job;
  job.task = spec::Task::instances;
  job.model.name = network;
  job.instances.masks = network.starts_with("mask");
  job.data.image_size = {24, 48};
  job.instances.slots = 3;
  job.instances.min_size = 20;
  job.instances.max_size = 40;
  job.instances.mask_size = 8;
  return job;
}

// One row of a batch, filled by an encoder.
class Row {
 public:
  explicit Row(const spec::Job& job) : encoder_(make_instances_encoder(job, {"cat", "dog"})) {
    for (const Field& field : instances_fields(job)) {
      values_.push_back({field, std::vector<std::byte>(static_cast<size_t>(field.bytes()), std::byte{77})});
    }
    for (auto& field : values_) out_.push_back(field.row(0));
  }

  void encode(const std::string& objects, const std::optional<base::Random>& random = {}) {
    const std::string png = image::encode_png(image::Image(80, 40));
    const std::string json = R"({"width": 80, "height": 40, "objects": [)" + objects + "]}";
    encoder_->encode({0, std::as_bytes(std::span(png)), {std::as_bytes(std::span(json))}}, random, out_);
  }
  Encoder& encoder() { return *encoder_; }
  FieldPointers out() { return out_; }
  std::vector<float> shown() const { return {values_[1].values<float>()[0], values_[1].values<float>()[1]}; }
  std::vector<float> box(int64_t slot) const {
    const float* at = values_[2].values<float>() + slot * 4;
    return {at[0], at[1], at[2], at[3]};
  }
  std::vector<int64_t> labels() const {
    const int64_t* at = values_[3].values<int64_t>();
    return {at[0], at[1], at[2]};
  }
  std::string mask_row(int64_t slot, int64_t y) const {
    std::string digits;
    for (int64_t x = 0; x < 8; ++x)
      digits += static_cast<char>('0' + values_[4].values<uint8_t>()[slot * 64 + y * 8 + x]);
    return digits;
  }

 private:
  std::unique_ptr<Encoder> encoder_;
  std::vector<FieldValues> values_;
  std::vector<std::byte*> out_;
};

using Boxes = std::vector<float>;
using Labels = std::vector<int64_t>;

TEST(InstancesEncoder, FillsSlotsInPixelsOfTheNetworksImage) {
  Row row(small_instances());
  row.encode(R"({"category": "dog", "bbox": [8, 4, 12, 8], "segmentation": [[8, 4, 20, 4, 20, 12, 8, 12]]},
                {"category": "cat", "bbox": [60, 20, 40, 10]})");
  EXPECT_EQ(row.shown(), (Boxes{20, 40})) << "half of 80 x 40";
  EXPECT_EQ(row.labels(), (Labels{2, 1, 0}));
  EXPECT_EQ(row.box(0), (Boxes{4, 2, 10, 6}));
  EXPECT_EQ(row.box(1), (Boxes{30, 10, 40, 15})) << "cut at the border of the image";
  EXPECT_EQ(row.box(2), (Boxes{0, 0, 0, 0}));
  EXPECT_EQ(row.mask_row(0, 0), "11111100");
  EXPECT_EQ(row.mask_row(0, 3), "11111100");
  EXPECT_EQ(row.mask_row(0, 4), "00000000");
  EXPECT_EQ(row.mask_row(1, 0), "00000000") << "no outline: the mask is not learnt";
  EXPECT_THAT(row.encoder().annotation(), HasSubstr(R"("width": 80)"));
}

TEST(InstancesEncoder, ReadsWhatIsAnnotatedInAnotherResolution) {
  const std::string png = image::encode_png(image::Image(40, 20));
  const std::string json = R"({"width": 80, "height": 40, "objects": [{"label": 0, "bbox": [8, 4, 12, 8]}]})";
  Row row(small_instances());
  row.encoder().encode({0, std::as_bytes(std::span(png)), {std::as_bytes(std::span(json))}}, {}, row.out());
  EXPECT_EQ(row.box(0), (Boxes{4, 2, 10, 6}));
}

TEST(InstancesEncoder, MirrorsBoxesAndMasksWithTheImage) {
  Row row(small_instances());
  std::set<std::string> seen;
  for (uint64_t i = 0; i < 20; ++i) {
    row.encode(R"({"label": 0, "bbox": [8, 4, 8, 8], "segmentation": [[8, 4, 12, 4, 12, 12, 8, 12]]})",
               base::Random(1, 0, i));
    const bool mirrored = row.box(0) == Boxes{32, 2, 36, 6};
    EXPECT_EQ(row.box(0), mirrored ? (Boxes{32, 2, 36, 6}) : (Boxes{4, 2, 8, 6}));
    EXPECT_EQ(row.mask_row(0, 0), mirrored ? "00110000" : "11000000");
    seen.insert(row.mask_row(0, 0));
  }
  EXPECT_EQ(seen.size(), 2U);
}

TEST(InstancesEncoder, LearnsNeitherCrowdsNorWhatCannotBeSeen) {
  Row row(small_instances());
  row.encode(R"({"label": 0, "bbox": [0, 0, 40, 40], "iscrowd": 1}, {"label": 0, "bbox": [90, 0, 9, 9]},
                {"label": 0, "bbox": [5, 5, 0, 9]}, {"label": 0, "bbox": [5, 5, 1, 9]}, {"label": 1, "bbox": [5, 5, 9, 9]})");
  EXPECT_EQ(row.labels(), (Labels{2, 0, 0}));
}

TEST(InstancesEncoder, KeepsTheLargestOfTooMany) {
  Row row(small_instances());
  row.encode(
      R"({"label": 0, "bbox": [0, 0, 4, 4]}, {"label": 1, "bbox": [0, 0, 20, 20]}, {"label": 0, "bbox": [0, 0, 8, 8]},
                {"label": 1, "bbox": [20, 0, 8, 8]}, {"label": 1, "bbox": [40, 0, 8, 8]}, {"label": 0, "bbox": [0, 0, 30, 30]})");
  EXPECT_EQ(row.labels(), (Labels{2, 1, 1})) << "20 x 20, the first of 8 x 8, 30 x 30, in their order";
  EXPECT_EQ(row.box(1), (Boxes{0, 0, 4, 4}));
}

TEST(InstancesEncoder, AnImageWithoutObjectsOrAnnotationsIsAnImageOfNone) {
  Row row(small_instances());
  row.encode("");
  EXPECT_EQ(row.labels(), (Labels{0, 0, 0}));
  EXPECT_EQ(row.shown(), (Boxes{20, 40}));
  const std::string png = image::encode_png(image::Image(30, 60));
  row.encoder().encode({0, std::as_bytes(std::span(png)), {}}, {}, row.out());  // a prediction
  EXPECT_EQ(row.labels(), (Labels{0, 0, 0}));
  EXPECT_EQ(row.shown(), (Boxes{24, 12})) << "the canvas is lower than the image would be";
  EXPECT_EQ(row.encoder().annotation(), annotation_text(30, 60));
  row.encoder().blank(row.out());
  EXPECT_EQ(row.shown(), (Boxes{0, 0})) << "no part in the loss";
  EXPECT_EQ(row.encoder().annotation(), "");
}

TEST(InstancesEncoder, AnImageOf50000PixelsIsOneAsAnyOther) {
  const std::string png = image::encode_png(image::Image(50000, 30));
  const std::string json = R"({"width": 50000, "height": 30, "objects": [
      {"label": 0, "bbox": [10000, 0, 20000, 30], "segmentation": [[10000, 0, 20000, 0, 20000, 30, 10000, 30]]},
      {"label": 1, "bbox": [10, 0, 100, 30]}]})";
  Row row(small_instances());
  row.encoder().encode({0, std::as_bytes(std::span(png)), {std::as_bytes(std::span(json))}}, {}, row.out());
  EXPECT_EQ(row.shown(), (Boxes{1, 40}));
  EXPECT_EQ(row.box(0), (Boxes{8, 0, 24, 1}));
  EXPECT_EQ(row.mask_row(0, 0), "11110000") << "half of the box";
  EXPECT_EQ(row.labels(), (Labels{1, 0, 0})) << "what is not a pixel wide any more cannot be learnt";
}

TEST(InstancesEncoder, DrawsSamplesWithObjects) {
  Row row(small_instances());
  row.encoder().draw(0, base::Random(3), row.out());
  for (const int64_t label : row.labels()) EXPECT_TRUE(label == 1 || label == 2) << label;
  const std::string drawn = row.encoder().annotation();
  EXPECT_EQ(read_objects(std::as_bytes(std::span(drawn)), {"cat", "dog"}).objects.size(), 3U);
}

TEST(InstancesEncoder, BoxesAloneHaveNoMaskField) {
  const spec::Job job = small_instances("fasterrcnn_resnet18_fpn");
  EXPECT_EQ(instances_fields(job).size(), 4U);
  Row row(job);
  row.encode(R"({"label": 0, "bbox": [5, 5, 9, 9], "segmentation": [[1, 2]]})");
  EXPECT_EQ(row.labels(), (Labels{1, 0, 0}));
}

TEST(InstancesEncoder, WhatIsWrongOfAnAnnotationIsLeftOutAndNamed) {
  Row row(small_instances());
  const auto complaint = [&](const std::string& object, const Labels& labels, bool training = false) -> std::string {
    row.encode(object + R"(, {"category": "dog", "bbox": [5, 5, 9, 9]})",
               training ? std::optional(base::Random(1)) : std::nullopt);
    EXPECT_EQ(row.labels(), labels);
    return row.encoder().left_out().empty() ? "none" : row.encoder().left_out().front();
  };
  EXPECT_EQ(complaint(R"({"category": "cat", "bbox": [5, 5, 9, 9]})", {1, 2, 0}), "none");
  EXPECT_THAT(complaint(R"({"category": "cow", "bbox": [5, 5, 9, 9]})", {2, 0, 0}), HasSubstr("\"cow\" is none of"));
  EXPECT_THAT(complaint(R"({"label": 0, "bbox": [5, null, 9, 9]})", {2, 0, 0}), HasSubstr("its bbox is [5,null,9,9]"));
  for (const bool training : {false, true}) {
    EXPECT_THAT(complaint(R"({"label": 0, "bbox": [5, 5, 9, 9], "segmentation": {"size": [80, 40], "counts": [3200]}})",
                          {1, 2, 0}, training),
                HasSubstr("outline of object 0: segmentation: its size [80,40] is not that of the image"));
    EXPECT_EQ(row.mask_row(0, 0), "00000000");
    EXPECT_THAT(complaint(R"({"label": 0, "bbox": [5, 5, 9, 9], "segmentation": [[5, 5, 9, 9]]})", {1, 2, 0}, training),
                HasSubstr("three corners"));
  }
  EXPECT_THAT(
      complaint(
          R"({"label": 0, "bbox": [5, 5, 9, 9], "iscrowd": 1, "segmentation": {"size": [40, 80], "counts": [7]}})",
          {2, 0, 0}),
      HasSubstr("shorter than the image"));
}

// The same view lies on whichever canvas: it is the rest of it that is longer or shorter.
TEST(InstancesEncoder, ShowsTheSameOnASmallerCanvas) {
  spec::Job job = small_instances();
  job.data.image_size = {64, 96};
  job.instances.canvases = {"32x64"};
  EXPECT_EQ(instances_fields(job, 1)[0].shape, (std::vector<int64_t>{3, 32, 64}));
  image::Image picture(80, 40);
  for (size_t i = 0; i < picture.pixels.size(); ++i) picture.pixels[i] = static_cast<uint8_t>(i * 7);
  const std::string png = image::encode_png(picture);
  const std::string json = R"({"width": 80, "height": 40, "objects": [{"label": 0, "bbox": [8, 4, 12, 8]}]})";
  const auto encoder = make_instances_encoder(job, {"cat", "dog"});
  std::vector<std::vector<std::vector<float>>> rows;
  for (const int64_t canvas : {0, 1}) {
    std::vector<std::vector<float>> fields;
    std::vector<std::byte*> out;
    for (const Field& field : instances_fields(job, canvas))
      fields.emplace_back(static_cast<size_t>(field.bytes() / 4 + 1), 9.0F);
    for (auto& field : fields) out.push_back(reinterpret_cast<std::byte*>(field.data()));
    encoder->use_canvas(canvas);
    encoder->encode({0, std::as_bytes(std::span(png)), {std::as_bytes(std::span(json))}}, base::Random(5), out);
    rows.push_back(std::move(fields));
  }
  EXPECT_EQ(rows[0][1], rows[1][1]);  // shown
  EXPECT_EQ(rows[0][2], rows[1][2]);  // boxes
  ASSERT_EQ(rows[0][1][0], 20);
  for (size_t y = 0; y < 32; ++y) {
    for (size_t x = 0; x < 64 * 3; ++x)
      ASSERT_EQ(rows[0][0][y * 96 * 3 + x], rows[1][0][y * 64 * 3 + x]) << y << " " << x;
  }
}

}  // namespace
}  // namespace lockstep::task
