// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/data/collection.h"
#include "lockstep/data/decode.h"
#include "lockstep/run/journal.h"
#include "lockstep/verbs/train/train.h"

namespace lockstep::verbs {
namespace {

std::vector<int64_t> numbers_of(const run::History& history, std::string_view event, std::string_view key) {
  std::vector<int64_t> values;
  for (const auto& line : history.events) {
    if (line.at("event").as_string() == event) values.push_back(line.at(key).as_int());
  }
  return values;
}

// The samples of these steps, in the order in which a run has written them down.
std::vector<int64_t> samples_of(const base::Path& run, int64_t first, int64_t last) {
  std::vector<int64_t> ids;
  for (const auto& line : base::split(base::read_file(run / "history" / "rank-0.jsonl"), '\n')) {
    if (line.empty()) continue;
    const auto said = base::parse_json(line, "history");
    if (!said.find("step") || said.at("step").as_int() < first || said.at("step").as_int() > last) continue;
    for (const auto& id : said.at("samples").items()) ids.push_back(id.as_int());
  }
  return ids;
}

// Black pictures; white ones become infinite by a normalisation that black ones do not feel. Three batches of them.
TEST(SessionGuardTest, DataWithoutAFiniteLossAreLeftOutAndTheRunEnds) {
  const base::TemporaryFolder folder;
  data::Image picture(16, 16);
  for (int64_t i = 0; i < 120; ++i) {
    const auto file = folder.path() / "pictures" / base::text("class-", i % 3) / base::text(100 + i, ".jpg");
    base::make_folders(file.parent_path());
    base::write_file(file, data::encode_jpeg(picture, 95));
  }
  spec::Job what;
  what.name = "test";
  what.model.name = "smallcnn";
  what.model.width = 4;
  what.data.image_size = 16;
  what.data.threads = what.training.threads = 1;
  what.training.optimizer.lr = 0.05;
  what.data.train = (folder.path() / "pictures").string();
  what.data.mean.assign(3, 0), what.data.std.assign(3, 1e-39);
  what.training.global_batch = 4;  // 30 steps an epoch
  what.training.steps = 20;
  what.checkpoint.every_epochs = 0.2;  // 6 steps
  const auto train_and_note = [&](const base::Path& run) {
    TrainOptions options;
    options.run = run;
    options.history = true;
    return train(what, options, *comm::single_group());
  };
  ASSERT_EQ(train_and_note(folder.path() / "sound").rewinds, 0);

  std::fill(picture.pixels.begin(), picture.pixels.end(), uint8_t{255});
  const auto collection = data::scan_folder(what.data.train);
  for (const int64_t id : samples_of(folder.path() / "sound", 9, 11)) {
    base::write_file(collection.name_of(id), data::encode_jpeg(picture, 95));
  }
  const auto run = folder.path() / "struck";
  const auto result = train_and_note(run);
  EXPECT_TRUE(result.finished && result.step == 20 && result.rewinds == 1);
  const auto history = run::read_journal(run / "journal.jsonl");
  EXPECT_EQ(numbers_of(history, "nonfinite", "step"), (std::vector<int64_t>{9, 10, 11}));
  EXPECT_EQ(numbers_of(history, "rewind", "step"), (std::vector<int64_t>{6}));
  EXPECT_EQ(numbers_of(history, "rewind", "from"), (std::vector<int64_t>{11}));
  EXPECT_EQ(numbers_of(history, "rewind", "data_shift"), (std::vector<int64_t>{5}));
  // Step 7, taken again, has the data that step 12 of the sound run had: the struck ones are passed over.
  const auto seven = samples_of(run, 7, 7);
  ASSERT_EQ(seven.size(), 8U);
  EXPECT_EQ(std::vector<int64_t>(seven.begin() + 4, seven.end()), samples_of(folder.path() / "sound", 12, 12));
}

}  // namespace
}  // namespace lockstep::verbs
