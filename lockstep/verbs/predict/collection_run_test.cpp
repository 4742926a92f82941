// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/collection_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/results/part_files.h"
#include "lockstep/results/record.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/training/small_run.h"
#include "lockstep/verbs/predict/predict.h"

namespace lockstep::verbs::predict {
namespace {

using training::SmallRun;
using training::Trained;

struct CollectionRunTest : testing::Test {
  CollectionRunTest() { base::write_file(data / "red" / "bad.jpg", "\xff\xd8 not really"); }

  loader::Collection collection() const { return image_collection({data.string()}); }

  CollectionResult run(const CollectionOptions& options) {
    const auto alone = comm::single_group();
    return predict_into(trained, collection(), options, *alone);
  }
  // Stops before batch `after` of this rank.
  CollectionOptions stopping(const base::Path& to, int64_t after) const {
    CollectionOptions options{.to = to};
    options.stop = [asked = std::make_shared<int64_t>(0), after] { return (*asked)++ < after ? "" : "SIGTERM"; };
    return options;
  }
  // Without the times, which differ.
  static std::vector<std::string> records_in(const base::Path& file) {
    std::vector<std::string> all;
    results::for_each_record(file, [&](const base::Json& record) {
      base::Json timeless = record;
      timeless.erase("time");
      all.push_back(timeless.dump(-1));
    });
    return all;
  }
  std::string refusal(const CollectionOptions& options) {
    try {
      run(options);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.what();
    }
    return "";
  }

  SmallRun small{20};  // 41 images: three batches of 16
  base::Path data = small.root() / "data", to = small.root() / "found.jsonl";
  Trained trained = training::load_trained({small.run()});
};

TEST_F(CollectionRunTest, HasARecordForEachImageInOrder) {
  const CollectionResult result = run({.to = to});
  EXPECT_TRUE(result.finished());
  EXPECT_EQ(result.images, 41);
  EXPECT_EQ(result.predicted, 41);
  EXPECT_EQ(result.failed, 1);
  const auto images = images_of({data.string()});
  const auto predictions = predict_images(trained, images, {});
  size_t i = 0;
  results::for_each_record(to, [&](const base::Json& record) {
    EXPECT_EQ(record.at("path").as_string(), images[i]);
    EXPECT_EQ(record.at("sha256").as_string(), base::sha256_of_file(images[i]));
    EXPECT_EQ(record.at("model").as_string(), result.model);
    if (predictions[i].failed()) {
      EXPECT_EQ(record.at("error").as_string(), predictions[i].error);
    } else {
      EXPECT_EQ(record.at("classes"), predictions[i].record.at("classes"));
    }
    ++i;
  });
  EXPECT_EQ(i, images.size());
  EXPECT_FALSE(base::is_there(small.root() / "found.files/parts"));
}

TEST_F(CollectionRunTest, GoesOnWhereItWasStoppedOnAnyNumberOfRanks) {
  run({.to = small.root() / "whole.jsonl"});
  const CollectionResult stopped = run(stopping(to, 1));
  EXPECT_EQ(stopped.stop_reason, "SIGTERM");
  EXPECT_EQ(stopped.predicted, 16);
  EXPECT_FALSE(base::is_there(to));
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    const CollectionResult result = predict_into(trained, collection(), {.to = to}, group);
    EXPECT_TRUE(result.finished());
    EXPECT_EQ(result.before, 16);
    EXPECT_EQ(result.predicted, 25);
    EXPECT_EQ(result.failed, 1);
  });
  EXPECT_EQ(records_in(to), records_in(small.root() / "whole.jsonl"));
}

TEST_F(CollectionRunTest, OneRankThatStopsLeavesItsShareToTheNextSession) {
  run({.to = small.root() / "whole.jsonl"});
  comm::run_thread_ranks(3, [&](comm::Group& group) {
    const auto options = stopping(to, group.rank() == 1 ? 0 : 100);
    const CollectionResult result = predict_into(trained, collection(), options, group);
    EXPECT_EQ(result.stop_reason, "SIGTERM on rank 1");
  });
  const CollectionResult result = run({.to = to});
  EXPECT_EQ(result.predicted, 16);
  EXPECT_EQ(records_in(to), records_in(small.root() / "whole.jsonl"));
}

TEST_F(CollectionRunTest, WhatIsDoneStaysAndWhatChangedIsDoneAgain) {
  run({.to = to});
  const std::string before = base::read_file(to);
  EXPECT_EQ(run({.to = to}).predicted, 0);
  EXPECT_EQ(base::read_file(to), before);  // to the byte: not even written again
  base::write_file(data / "red" / "0.jpg", base::read_file(data / "green thing" / "0.jpg"));
  base::write_file(data / "red" / "new.jpg", base::read_file(data / "red" / "1.jpg"));
  std::filesystem::remove(data / "red" / "bad.jpg");
  const CollectionResult result = run({.to = to});
  EXPECT_TRUE(result.finished());
  EXPECT_EQ(result.images, 41);
  EXPECT_EQ(result.failed, 0);
  const auto records = records_in(to);
  ASSERT_EQ(records.size(), 41U);
  const auto with = [&](const std::string& words) {
    return std::count_if(records.begin(), records.end(),
                         [&](const std::string& record) { return record.find(words) != std::string::npos; });
  };
  EXPECT_EQ(with("red/new.jpg"), 1);
  EXPECT_EQ(with("bad.jpg"), 0);
  EXPECT_EQ(with(base::sha256_of_file(data / "green thing" / "0.jpg")), 2);
}

TEST_F(CollectionRunTest, RefusesAResultsFileOfSomethingElse) {
  run({.to = to});
  const std::string before = base::read_file(to);
  EXPECT_THAT(refusal({.to = to, .top = 1}), testing::HasSubstr("another model: --top was 5, now 1"));
  std::filesystem::remove_all(small.root() / "found.files");
  EXPECT_THAT(refusal({.to = to, .top = 1}), testing::HasSubstr("has records of the model small@"));
  const auto other = small.root() / "other.jsonl";
  base::write_file(other, "{\"path\": \"mine\"}\n");
  EXPECT_THAT(refusal({.to = other}), testing::HasSubstr("has 1 lines that are no records of predict"));
  EXPECT_EQ(base::read_file(other), "{\"path\": \"mine\"}\n");
  const auto alone = comm::single_group();
  const auto half = image_collection({(data / "red").string()});
  EXPECT_THROW(predict_into(trained, half, {.to = to}, *alone), base::Error);  // records of images elsewhere
  EXPECT_EQ(base::read_file(to), before);
  EXPECT_EQ(predict_into(trained, half, {.to = to, .again = true}, *alone).predicted, 21);
}

TEST_F(CollectionRunTest, RefusesToGoOnWithOtherImages) {
  run(stopping(to, 1));
  const auto alone = comm::single_group();
  const auto half = image_collection({(data / "red").string()});
  EXPECT_THROW(predict_into(trained, half, {.to = to}, *alone), base::Error);
  EXPECT_EQ(run({.to = to}).before, 16);  // nothing was lost
}

TEST_F(CollectionRunTest, TakesANameThatIsNoText) {
  base::write_file(data / "red" / "caf\xe9.jpg", base::read_file(data / "red" / "1.jpg"));
  EXPECT_TRUE(run({.to = to}).finished());
  const auto records = records_in(to);
  EXPECT_THAT(records, testing::Contains(testing::HasSubstr("caf\\\\xe9.jpg\",\"sha256\":\"")));
  EXPECT_EQ(run({.to = to}).predicted, 0);
}

TEST_F(CollectionRunTest, DrawsPicturesAndThePage) {
  EXPECT_TRUE(run({.to = to}).finished());
  EXPECT_FALSE(base::is_there(small.root() / "found.html"));
  loader::Collection images = collection();
  images.root = data.string();
  const auto alone = comm::single_group();
  const CollectionResult result = predict_into(trained, images, {.to = to, .pictures = true}, *alone);
  EXPECT_EQ(result.predicted, 41);  // the records were there, the pictures were not
  const base::Path files = small.root() / "found.files";
  const auto picture = base::read_file(files / "pictures/green thing/0.jpg.jpg");
  const auto decoded = image::decode_image(std::as_bytes(std::span(picture.data(), picture.size())));
  EXPECT_EQ(decoded.width, 24);
  EXPECT_FALSE(base::is_there(files / "pictures/red/bad.jpg.jpg"));
  EXPECT_THAT(base::read_file(small.root() / "found.html"), testing::HasSubstr("\"images\":41,\"failed\":1"));
  EXPECT_EQ(predict_into(trained, images, {.to = to, .pictures = true}, *alone).predicted, 0);
}

TEST_F(CollectionRunTest, StopsBeforeTheWalltimeIsOver) {
  CollectionOptions options{.to = to};
  options.seconds_left = 0;
  EXPECT_EQ(run(options).stop_reason, "walltime");
  EXPECT_TRUE(run({.to = to}).finished());
}

TEST_F(CollectionRunTest, TakesTheImagesOfShards) {
  std::filesystem::remove(data / "red" / "bad.jpg");  // no shard has such
  const auto images = images_of({(data / "red").string()});
  const base::Path shards = small.root() / "shards";
  base::make_folders(shards);
  shards::ShardWriter writer(shards, "part-000000");
  std::vector<std::string> files;
  for (size_t i = 0; i < images.size(); ++i) {
    writer.add({base::text("k", i), shards::kNoLabel, 0}, {{"jpg", files.emplace_back(base::read_file(images[i]))}});
  }
  shards::write_shard_list(shards, {"", {}, {writer.finish()}});
  const auto alone = comm::single_group();
  EXPECT_EQ(predict_into(trained, image_collection({shards.string()}), {.to = to}, *alone).predicted, 20);
  EXPECT_THAT(records_in(to)[0], testing::HasSubstr(base::sha256_of_file(images[0])));
  EXPECT_EQ(predict_into(trained, image_collection({shards.string()}), {.to = to}, *alone).predicted, 0);
}

}  // namespace
}  // namespace lockstep::verbs::predict
