// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/training/small_run.h"

namespace lockstep::verbs::predict {
namespace {

double probability(const Prediction& prediction, size_t answer) {
  return prediction.record.at("classes").items()[answer].at("probability").as_double();
}

const base::Json& first(const Prediction& prediction) {
  return prediction.record.at("classes").items()[0];
}

TEST(PredictTest, FindsImagesInFoldersSorted) {
  const training::SmallRun small(2);
  base::write_file(small.root() / "data" / "red" / "notes.txt", "");
  const auto data = small.root() / "data";
  EXPECT_EQ(images_of({data.string()}),
            (std::vector<std::string>{data / "green thing/0.jpg", data / "green thing/1.jpg", data / "red/0.jpg",
                                      data / "red/1.jpg"}));
  EXPECT_THROW(images_of({(data / "none").string()}), base::Error);
  EXPECT_THROW(images_of({(small.run()).string()}), base::Error);  // a folder without images
}

TEST(PredictTest, GivesProbabilitiesMostProbableFirst) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const auto images = images_of({(small.root() / "data").string()});
  const auto predictions = predict_images(trained, images, {});
  ASSERT_EQ(predictions.size(), images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(predictions[i].path, images[i]);
    ASSERT_EQ(predictions[i].record.at("classes").size(), 2U);
    EXPECT_GE(probability(predictions[i], 0), probability(predictions[i], 1));
    EXPECT_NEAR(probability(predictions[i], 0) + probability(predictions[i], 1), 1, 1e-6);
  }
}

TEST(PredictTest, AnImageHasTheSameAnswerInAnyCompany) {
  const training::SmallRun small(12);  // 24 images: more than one batch
  const training::Trained trained = training::load_trained({small.run()});
  const auto images = images_of({(small.root() / "data").string()});
  const auto together = predict_images(trained, images, {});
  const auto alone = predict_images(trained, {images[20]}, {});
  EXPECT_EQ(first(alone[0]).at("name"), first(together[20]).at("name"));
  EXPECT_NEAR(probability(alone[0], 0), probability(together[20], 0), 1e-6);
}

TEST(PredictTest, BadImagesAreReportedEachWithItsReason) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const auto good = (small.root() / "data" / "red" / "0.jpg").string();
  const auto bad = (small.root() / "bad.jpg").string();
  base::write_file(bad, "\xff\xd8 not really");
  int64_t told = 0;
  PredictOptions options;
  options.top = 1;
  options.each = [&](const Prediction&) { ++told; };
  const auto predictions = predict_images(trained, {bad, good}, options);
  EXPECT_TRUE(predictions[0].failed());
  EXPECT_FALSE(predictions[0].error.empty());
  EXPECT_EQ(predictions[1].record.at("classes").size(), 1U);
  EXPECT_EQ(told, 2);
  const base::Json json = predict_json(predictions);
  EXPECT_EQ(json.at("failed").as_int(), 1);
  EXPECT_TRUE(json.at("images").items()[0].contains("error"));
  EXPECT_THAT(predict_line(predictions[1], trained), testing::ContainsRegex("red/0.jpg  (red|green thing) [0-9.]+ %"));
}

TEST(PredictTest, WritesATableThatNoSpreadsheetRuns) {
  spec::Job job;
  const auto task = task::make_task(job, {"=cat", "a \"dog\""});
  const auto record = base::parse_json(
      R"({"classes": [{"name": "=cat", "probability": 0.75}, {"name": "a \"dog\"", "probability": 0.25}]})", "record");
  const std::vector<Prediction> all{{"@x.jpg", record, ""}, {"/a,b.jpg", {}, "empty"}};
  EXPECT_EQ(predict_csv(all, *task, 0),
            "file,label,confidence,'=cat,\"a \"\"dog\"\"\",error\r\n"
            "./@x.jpg,'=cat,0.750000,0.750000,0.250000,\r\n"
            "\"/a,b.jpg\",,,,,empty\r\n");
  EXPECT_EQ(predict_csv({all[0]}, *task, 2),
            "file,label,confidence,label_2,confidence_2,error\r\n"
            "./@x.jpg,'=cat,0.750000,\"a \"\"dog\"\"\",0.250000,\r\n");
  EXPECT_EQ(table_format("a.jsonl"), TableFormat::jsonl);
  EXPECT_THROW(table_format("a.txt"), base::Error);
}

TEST(PredictTest, TakesAFolderOfShardsAsWell) {
  const training::SmallRun small;
  const training::Trained trained = training::load_trained({small.run()});
  const auto images = images_of({(small.root() / "data").string()});
  const base::Path shards = small.root() / "shards";
  base::make_folders(shards);
  shards::ShardWriter writer(shards, "part-000000");
  std::vector<std::string> files;
  for (size_t i = 0; i < images.size(); ++i) {
    writer.add({base::text("k", i), shards::kNoLabel, 0}, {{"jpg", files.emplace_back(base::read_file(images[i]))}});
  }
  shards::write_shard_list(shards, {"", {}, {writer.finish()}});
  const auto from_files = predict_images(trained, images, {});
  const auto alone = comm::single_group();
  const auto from_shards = predict_collection(trained, image_collection({shards.string()}), {}, *alone);
  ASSERT_EQ(from_shards.size(), images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    EXPECT_EQ(from_shards[i].path, base::text(shards.string(), "/part-000000.tar/k", i, ".jpg"));
    EXPECT_EQ(from_shards[i].record, from_files[i].record);
  }
}

TEST(PredictTest, RanksGiveThePredictionsOfOneInTheSameOrder) {
  const training::SmallRun small(21);  // 42 images: three batches of 16
  const training::Trained trained = training::load_trained({small.run()});
  const auto collection = image_collection({(small.root() / "data").string()});
  base::write_file(small.root() / "data" / "red" / "2.jpg", "");
  const auto alone = comm::single_group();
  const auto one = predict_collection(trained, collection, {}, *alone);
  for (const int64_t ranks : {2, 4}) {
    comm::run_thread_ranks(ranks, [&](comm::Group& group) {
      std::vector<std::string> told;
      PredictOptions options;
      options.each = [&](const Prediction& prediction) { told.push_back(prediction.path); };
      const auto many = predict_collection(trained, collection, options, group);
      EXPECT_EQ(told.size(), group.rank() == 0 ? 42U : 0U);
      ASSERT_EQ(many.size(), one.size());
      for (size_t i = 0; i < many.size(); ++i) {
        EXPECT_EQ(many[i].path, one[i].path);
        EXPECT_EQ(many[i].record, one[i].record);
        EXPECT_EQ(many[i].error, one[i].error);
      }
    });
  }
}

}  // namespace
}  // namespace lockstep::verbs::predict
