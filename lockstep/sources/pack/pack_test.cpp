// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/sources/pack/probe.h"
#include "lockstep/sources/pack/verify.h"

namespace lockstep::sources {
namespace {

using base::text;
using testing::HasSubstr;

// 60 images in three classes; one of them damaged, two alike.
class PackTest : public testing::Test {
 protected:
  PackTest() {
    for (int i = 0; i < 60; ++i)
      put(text("source/", i % 3 == 0 ? "ant" : i % 3 == 1 ? "bee" : "cow", "/", i, ".jpg"), encoded_image(i));
    put("source/bee/1.jpg", encoded_image(1).substr(0, 300));
    put("source/cow/2.jpg", encoded_image(5));
    request_.source.path = folder_.path() / "source";
    request_.folder = folder_.path() / "set";
    request_.shard_bytes = 1 << 16;
    request_.validate = 0.2;
    request_.threads = 2;
  }
  static std::string encoded_image(int number) {
    image::Image image(32 + number, 40);
    base::Random random(7, 0, static_cast<uint64_t>(number));
    for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits());
    return image::encode_jpeg(image, 80);
  }
  void put(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  // Names and digests of every file below a folder.
  static std::vector<std::string> content(const base::Path& folder) {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().lexically_relative(folder).string();
      all.push_back(entry.is_regular_file() ? text(name, " ", base::sha256_hex(base::read_file(entry.path()))) : name);
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  std::string complaint() const {
    try {
      pack(request_, {});
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.message();
    }
    return "no complaint";
  }

  base::TemporaryFolder folder_;
  PackRequest request_;
};

TEST_F(PackTest, WritesEverySampleOnceIntoVerifiedShards) {
  const Packed packed = pack(request_, {});
  const shards::ShardSet train(request_.folder / "train");
  const shards::ShardSet validate(request_.folder / "validate");
  EXPECT_EQ(train.classes(), (std::vector<std::string>{"ant", "bee", "cow"}));
  EXPECT_EQ(train.size() + validate.size(), 59);
  EXPECT_EQ(packed.dataset.at("num_unreadable").as_int(), 1);
  EXPECT_EQ(packed.dataset.at("unreadable").items()[0].at("name").as_string(), "bee/1.jpg");
  EXPECT_EQ(packed.dataset.at("duplicates").at("groups").as_int(), 1);
  EXPECT_GT(packed.dataset.at("parts").at("train").at("shards").as_int(), 1);
  EXPECT_NEAR(packed.dataset.at("parts").at("train").at("mean").items()[0].as_double(), 0.5, 0.02);
  const auto decoded = [](const std::string& bytes) {
    return image::decode_image(std::as_bytes(std::span(bytes.data(), bytes.size())));
  };
  for (int64_t id = 0; id < train.size(); ++id) {
    const auto [shard, position] = train.position_of(id);
    const shards::IndexedSample sample = train.index(shard).sample(position);
    const std::string key(sample.key);  // "00000041-43"
    const int number = std::stoi(key.substr(key.rfind('-') + 1));
    EXPECT_EQ(sample.label, number % 3);
    EXPECT_FALSE(sample.row_offsets.empty());
    const auto member = train.index(shard).find(position, "jpg");
    ASSERT_TRUE(member);
    const std::string tar = base::read_file(train.tar_path(shard));
    EXPECT_EQ(decoded(tar.substr(static_cast<size_t>(member->offset), static_cast<size_t>(member->size))),
              decoded(encoded_image(number == 2 ? 5 : number)));
  }
  const VerifyResult verified = verify(request_.folder, 2, {});
  EXPECT_EQ(verified.faults, std::vector<std::string>{});
  EXPECT_EQ(verified.num_samples, 59);
}

TEST_F(PackTest, TheBytesDoNotDependOnThreads) {
  pack(request_, {});
  const auto first = content(request_.folder);
  for (const int64_t threads : {1, 5}) {
    request_.folder = folder_.path() / text("set", threads);
    request_.threads = threads;
    pack(request_, {});
    EXPECT_EQ(content(request_.folder), first) << threads;
  }
}

TEST_F(PackTest, TheBytesDoNotDependOnRanks) {
  pack(request_, {});
  const auto whole = content(request_.folder);
  for (const int64_t ranks : {2, 5}) {
    request_.folder = folder_.path() / text("ranks", ranks);
    std::barrier meeting(ranks);
    std::atomic<int64_t> done = 0;
    {
      std::vector<std::jthread> team;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        team.emplace_back([&, rank] {
          int64_t mine = 0;
          pack(request_, [&](const PackProgress& state) { mine = state.samples_done; },
               {rank, ranks, [&] { meeting.arrive_and_wait(); }});
          EXPECT_LT(mine, 60);
          done += mine;
        });
      }
    }
    EXPECT_EQ(done, 60);
    EXPECT_EQ(content(request_.folder), whole) << ranks;
  }
}

TEST_F(PackTest, GoesOnAfterAnInterruptionWithTheSameBytes) {
  pack(request_, {});
  const auto whole = content(request_.folder);
  for (const int64_t stop_after : {1, 17, 40}) {
    request_.folder = folder_.path() / text("cut", stop_after);
    EXPECT_THROW(pack(request_,
                      [&](const PackProgress& state) {
                        if (state.samples_done == stop_after) throw std::string("killed");
                      }),
                 std::string);
    EXPECT_FALSE(std::filesystem::exists(request_.folder / "dataset.json"));
    base::write_file(request_.folder / "train/.train-000000.tar.part", "left by a killed process");
    int64_t redone = 0;
    const Packed packed = pack(request_, [&](const PackProgress& state) { redone = state.samples_done; });
    if (stop_after == 40) {
      EXPECT_GT(packed.shards_kept, 0);
      EXPECT_LT(redone, 60);
    }
    EXPECT_EQ(content(request_.folder), whole) << stop_after;
  }
}

TEST_F(PackTest, LeavesACompleteSetAloneAndRefusesAnother) {
  pack(request_, {});
  EXPECT_TRUE(pack(request_, {}).was_complete);
  request_.seed = 2;
  EXPECT_THAT(complaint(), HasSubstr("the folder holds another dataset (seed)"));
  request_.seed = 1;
  put("source/ant/new.jpg", encoded_image(99));
  EXPECT_THAT(complaint(), HasSubstr("the folder holds another dataset (source_samples)"));
}

TEST_F(PackTest, CompletesAnInterruptedSetWithTheSameOptionsOnly) {
  for (const bool keep_order : {false, true}) {
    request_.folder = folder_.path() / text("begun", keep_order);
    request_.keep_order = keep_order;
    EXPECT_THROW(pack(request_,
                      [&](const PackProgress& state) {
                        if (state.samples_done == 40) throw std::string("killed");
                      }),
                 std::string);
    for (int session = 0; session < 2; ++session) {  // begun, then complete
      request_.keep_order = !keep_order;
      EXPECT_THAT(complaint(), HasSubstr("the folder holds another dataset (order)"));
      request_.keep_order = keep_order;
      EXPECT_EQ(pack(request_, {}).was_complete, session == 1);
    }
    EXPECT_EQ(verify(request_.folder, 2, {}).faults, std::vector<std::string>{});
  }
}

TEST_F(PackTest, KnowsItsSourceHoweverItIsSpelled) {
  pack(request_, {});
  request_.source.path = folder_.path() / "source" / "." / "";
  EXPECT_TRUE(pack(request_, {}).was_complete);
}

TEST_F(PackTest, NoticesThatAListTellsOtherThings) {
  request_.source.path = folder_.path() / "list.csv";
  request_.source.images = folder_.path() / "source";
  put("list.csv", "path,label,age\nant/0.jpg,1,30\ncow/2.jpg,2,40\n");
  pack(request_, {});
  EXPECT_TRUE(pack(request_, {}).was_complete);
  put("list.csv", "path,label,age\nant/0.jpg,1,31\ncow/2.jpg,2,40\n");
  EXPECT_THAT(complaint(), HasSubstr("the folder holds another dataset (source_lists_crc32c)"));
}

TEST_F(PackTest, SaysThatACompleteSetHasLostAShard) {
  pack(request_, {});
  std::filesystem::remove(request_.folder / "train/train-000000.tar");
  EXPECT_THAT(complaint(), HasSubstr("was complete and is damaged"));
}

TEST_F(PackTest, RepairsDamagedAndMissingShardsToTheSameBytes) {
  pack(request_, {});
  const auto whole = content(request_.folder);
  EXPECT_EQ(repair(request_, {}).damaged, std::vector<std::string>{});
  std::string bytes = base::read_file(request_.folder / "train/train-000001.tar");
  bytes[1000] ^= 1;
  put("set/train/train-000001.tar", bytes);
  put("set/train/train-000002.idx", "v1.2 0");
  std::filesystem::remove(request_.folder / "validate/validate-000000.sxi");
  const Repaired repaired = repair(request_, {});
  EXPECT_EQ(repaired.damaged, (std::vector<std::string>{"train-000001", "train-000002", "validate-000000"}));
  EXPECT_GT(repaired.num_shards, 3);
  EXPECT_EQ(content(request_.folder), whole);
  std::filesystem::remove_all(request_.folder / "validate");  // with its list
  const auto repair_complaint = [this]() -> std::string {
    try {
      repair(request_, {});
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
      return error.message();
    }
    return "no complaint";
  };
  EXPECT_THAT(repair_complaint(), HasSubstr("its lists of shards are lost"));
  request_.folder = folder_.path() / "new";
  EXPECT_THAT(repair_complaint(), HasSubstr("there is nothing to repair"));
}

TEST_F(PackTest, RepairNoticesThatTheSourceHasChanged) {
  pack(request_, {});
  std::string changed = encoded_image(0);
  for (size_t i = changed.size() / 2; i < changed.size() / 2 + 4; ++i) changed[i] = changed[i] == 'a' ? 'b' : 'a';
  put("source/ant/0.jpg", changed);  // of the same length
  for (const char* part : {"train", "validate"}) {
    for (const auto& entry : base::list_folder(request_.folder / part)) {
      if (entry.extension() == ".tar") std::filesystem::remove(entry);
    }
  }
  try {
    repair(request_, {});
    FAIL() << "other bytes";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("comes out otherwise than when the set was prepared"));
  }
}

TEST_F(PackTest, SaysWhenNothingCanBeRead) {
  request_.source.path = folder_.path() / "bad";
  put("bad/a/1.jpg", "text");
  EXPECT_THAT(complaint(), HasSubstr("not one readable sample; a/1.jpg: neither JPEG, PNG, WebP nor TIFF"));
}

TEST_F(PackTest, ShrinksToTheSideAskedFor) {
  request_.image.max_side = 24;
  const Packed packed = pack(request_, {});
  const base::Json& train = packed.dataset.at("parts").at("train");
  EXPECT_LE(train.at("width_max").as_int(), 24);
  EXPECT_EQ(train.at("height_max").as_int(), 24);
  EXPECT_EQ(train.at("shrunk"), train.at("samples"));
  EXPECT_EQ(verify(request_.folder, 1, {}).faults, std::vector<std::string>{});
}

TEST_F(PackTest, VerifyNamesAFlippedBitAndARemovedIndex) {
  pack(request_, {});
  const base::Path tar = request_.folder / "train/train-000001.tar";
  std::string bytes = base::read_file(tar);
  bytes[1000] ^= 1;
  base::FileWriter(tar, base::FileWriter::Mode::truncate).write(bytes);
  const auto faults = verify(request_.folder, 2, {}).faults;
  ASSERT_EQ(faults.size(), 2u);
  EXPECT_THAT(faults[0], HasSubstr("train-000001.tar: the file has changed"));
  EXPECT_THAT(faults[1], HasSubstr("the bytes have changed since they were written"));
  std::filesystem::remove(request_.folder / "validate/validate-000000.sxi");
  EXPECT_THAT(verify(request_.folder, 2, {}).faults.back(), HasSubstr("validate-000000.sxi: there is no such file"));
  EXPECT_THROW(verify(folder_.path() / "source", 1, {}), base::Error);
}

TEST_F(PackTest, ForecastIsNearTheFact) {
  const PackForecast forecast = forecast_pack(request_);
  EXPECT_FALSE(std::filesystem::exists(request_.folder));
  EXPECT_EQ(forecast.num_samples, 60);
  EXPECT_TRUE(forecast.fits());
  EXPECT_EQ(forecast.refused.size(), 1u);
  pack(request_, {});
  int64_t bytes = 0, inodes = 1;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(request_.folder)) {
    bytes +=
        entry.is_regular_file() && entry.path().extension() != ".jpg" ? static_cast<int64_t>(entry.file_size()) : 0;
    ++inodes;
  }
  EXPECT_NEAR(static_cast<double>(forecast.bytes_out), static_cast<double>(bytes), 0.2 * static_cast<double>(bytes));
  const int64_t notes = forecast.num_shards + 5;  // away at the end, with .work, its lock and files written aside
  EXPECT_NEAR(static_cast<double>(forecast.num_inodes), static_cast<double>(inodes + notes), 3);
}

TEST_F(PackTest, ForecastKnowsWhatIsThereAlready) {
  EXPECT_THROW(pack(request_,
                    [&](const PackProgress& state) {
                      if (state.samples_done == 40) throw std::string("killed");
                    }),
               std::string);
  const PackForecast rest = forecast_pack(request_);
  request_.folder = folder_.path() / "other";
  const PackForecast whole = forecast_pack(request_);
  request_.folder = folder_.path() / "set";
  EXPECT_GT(rest.shards_kept, 0);
  EXPECT_EQ(rest.num_shards, whole.num_shards);
  EXPECT_EQ(rest.num_inodes, whole.num_inodes - 4 * rest.shards_kept);
  EXPECT_LT(rest.bytes_out, whole.bytes_out);
  pack(request_, {});
  EXPECT_TRUE(forecast_pack(request_).is_complete);
  EXPECT_TRUE(forecast_pack(request_).fits());
}

TEST_F(PackTest, ForecastRefusesTheFoldersThatTheRunRefuses) {
  const auto forecast_complaint = [this](base::Blame blame) -> std::string {
    try {
      forecast_pack(request_);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), blame);
      return error.message();
    }
    return "no complaint";
  };
  pack(request_, {});
  request_.seed = 2;
  EXPECT_THAT(forecast_complaint(base::Blame::user), HasSubstr("the folder holds another dataset (seed)"));
  put("foreign/thesis.txt", "precious");
  request_.folder = folder_.path() / "foreign";
  EXPECT_THAT(forecast_complaint(base::Blame::user), HasSubstr("holds no dataset of ours"));
  request_.folder = folder_.path() / "foreign/thesis.txt";
  EXPECT_THAT(forecast_complaint(base::Blame::user), HasSubstr("this is a file"));
  request_.folder = folder_.path() / "foreign/thesis.txt/set";
  EXPECT_THAT(forecast_complaint(base::Blame::machine), HasSubstr("thesis.txt: Not a directory"));
}

}  // namespace
}  // namespace lockstep::sources
