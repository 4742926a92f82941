// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class VerifyTest : public testing::Test {
 protected:
  void write(const std::string& part, const std::string& key, int32_t label, const std::string& written_label) {
    base::make_folders(folder_.path() / part);
    shards::ShardWriter writer(folder_.path() / part, "shard-000000");
    writer.add({key, label, 0}, {{"jpg", image_}, {"cls", written_label}});
    shards::write_shard_list(folder_.path() / part, {"", {"cat", "dog"}, {writer.finish()}});
  }
  std::vector<std::string> faults() const { return verify(folder_.path(), 1, {}).faults; }
  std::vector<std::string> train_faults() const { return verify(folder_.path() / "train", 1, {}).faults; }

  // What prep writes last, over the parts that are there.
  void conclude(const std::vector<std::string>& names) const {
    base::Json dataset = base::Json::object(), parts = base::Json::object();
    base::Sha256 fingerprint;
    for (const auto& name : names) {
      parts[name] = base::Json::object();
      parts[name]["samples"] = 1;
      for (const auto& shard : shards::read_shard_list(folder_.path() / name).shards)
        fingerprint.update(base::text(name, "/", shard.name, " ", shard.tar_bytes, " ", shard.tar_crc32c, "\n"));
    }
    dataset["classes"] = base::Json::array_of(std::vector<std::string>{"cat", "dog"});
    dataset["parts"] = std::move(parts);
    dataset["fingerprint"] = fingerprint.hex();
    base::write_json(folder_.path() / "dataset.json", dataset);
  }

  base::TemporaryFolder folder_;
  std::string image_ = image::encode_jpeg(image::Image(20, 20), 90);
};

TEST_F(VerifyTest, FindsNoFaultInAGoodSet) {
  write("train", "0-a", 1, "1");
  write("validate", "1-b", 0, "0");
  conclude({"train", "validate"});
  const VerifyResult result = verify(folder_.path(), 1, {});
  EXPECT_THAT(result.faults, ElementsAre());
  EXPECT_EQ(result.num_shards, 2);
  EXPECT_EQ(result.num_samples, 2);
}

TEST_F(VerifyTest, NamesAPartThatIsMissing) {
  write("train", "0-a", 1, "1");
  write("validate", "1-b", 0, "0");
  conclude({"train", "validate"});
  EXPECT_THAT(faults(), ElementsAre());
  std::filesystem::rename(folder_.path() / "train", folder_.path() / "moved");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("train/shards.json: missing")));
  std::filesystem::remove_all(folder_.path() / "validate");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("train/shards.json: missing")));
}

TEST_F(VerifyTest, NamesShardsOfAnotherDataset) {
  write("train", "0-a", 1, "1");
  conclude({"train"});
  const auto keep = shards::read_shard_list(folder_.path() / "train");
  write("train", "0-b", 1, "1");  // as long, other bytes
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("dataset.json: the lists of shards are not those")));
  shards::write_shard_list(folder_.path() / "train", keep);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("shard-000000.tar: shard and index are of another dataset")));
}

TEST_F(VerifyTest, NamesEveryDamagedShardAndChecksTheOthers) {
  base::make_folders(folder_.path() / "train");
  shards::ShardList list{"", {"cat", "dog"}, {}};
  for (int i = 0; i < 4; ++i) {
    shards::ShardWriter writer(folder_.path() / "train", base::text("shard-00000", i));
    writer.add({base::text("key", i), 1, 0}, {{"jpg", image_}, {"cls", i == 3 ? "0" : "1"}});
    list.shards.push_back(writer.finish());
  }
  shards::write_shard_list(folder_.path() / "train", list);
  std::filesystem::remove(folder_.path() / "train/shard-000000.tar");
  std::filesystem::resize_file(folder_.path() / "train/shard-000001.tar", 1000);
  const VerifyResult result = verify(folder_.path() / "train", 2, {});
  EXPECT_THAT(result.faults, ElementsAre(HasSubstr("shard-000000.tar: the shard is missing"),
                                         HasSubstr("shard-000001.tar: 1000 bytes"),
                                         HasSubstr("key3.cls: not the label of the index")));
  EXPECT_EQ(result.num_shards, 2);
  EXPECT_EQ(result.num_samples, 2);
}

TEST_F(VerifyTest, NamesAShardThatIsCutWhileItIsRead) {
  base::make_folders(folder_.path() / "train");
  shards::ShardWriter writer(folder_.path() / "train", "shard-000000");
  image::Image noise(200, 200);
  for (size_t i = 0; i < noise.pixels.size(); ++i) noise.pixels[i] = static_cast<uint8_t>(i * i % 251);
  image_ = image::encode_png(noise);  // some pages each
  for (int i = 0; i < 3; ++i) writer.add({base::text("key", i), 1, 0}, {{"png", image_}, {"cls", "1"}});
  shards::write_shard_list(folder_.path() / "train", {"", {"cat", "dog"}, {writer.finish()}});
  const base::Path tar = folder_.path() / "train/shard-000000.tar";
  const VerifyResult result =
      verify(folder_.path() / "train", 1, [&](int64_t, int64_t) { std::filesystem::resize_file(tar, 4096); });
  EXPECT_THAT(result.faults, ElementsAre(HasSubstr("key1: "), HasSubstr("key2: ")));
  EXPECT_THAT(result.faults[0], HasSubstr("shard-000000.tar: it has become shorter while it was read"));
}

TEST_F(VerifyTest, NamesWhatChangesTheMeaningOfGoodShards) {
  write("train", "0-a", 1, "1");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("dataset.json: missing")));
  EXPECT_THAT(verify(folder_.path() / "train", 1, {}).faults, ElementsAre());  // one part alone
  conclude({"train"});
  base::write_file(folder_.path() / "train/shard-000009.tar", "left by somebody");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("train/shard-000009.tar: it stands in no list")));
  std::filesystem::remove(folder_.path() / "train/shard-000009.tar");
  auto list = shards::read_shard_list(folder_.path() / "train");
  std::swap(list.classes[0], list.classes[1]);
  shards::write_shard_list(folder_.path() / "train", list);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("train/shards.json: other classes than in")));
  std::swap(list.classes[0], list.classes[1]);
  shards::write_shard_list(folder_.path() / "train", list);
  base::Json dataset = base::read_json(folder_.path() / "dataset.json");
  dataset["parts"]["train"]["samples"] = 2;
  base::write_json(folder_.path() / "dataset.json", dataset);
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("it tells of 2 samples in train, the list of 1")));
}

TEST_F(VerifyTest, NamesADatasetThatIsNotComplete) {
  base::write_file(folder_.path() / "dataset.begun.json", "{}");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("not complete")));
  write("train", "0-a", 1, "1");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("not complete")));
}

TEST_F(VerifyTest, NamesAKeyThatStandsTwice) {
  write("train", "0-a", 1, "1");
  write("validate", "0-a", 0, "0");
  conclude({"train", "validate"});
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("validate/shard-000000.tar/0-a: this key stands elsewhere")));
}

TEST_F(VerifyTest, NamesALabelThatIsNotTheIndexs) {
  write("train", "0-a", 1, "0");
  EXPECT_THAT(train_faults(), ElementsAre(HasSubstr("0-a.cls: not the label of the index")));
  write("train", "0-a", 2, "2");
  EXPECT_THAT(train_faults(), ElementsAre(HasSubstr("no class of the list")));
}

TEST_F(VerifyTest, NamesAForeignIndexOfDali) {
  write("train", "0-a", 1, "1");
  base::write_file(folder_.path() / "train/shard-000000.idx", "v1.2 1\n");
  EXPECT_THAT(train_faults(), ElementsAre(HasSubstr("shard-000000.idx: does not tell what the tar file holds")));
}

TEST_F(VerifyTest, NamesADamagedImageWithARightChecksum) {
  image_ = image_.substr(0, image_.size() - 2);
  write("train", "0-a", 1, "1");
  EXPECT_THAT(train_faults(), ElementsAre(HasSubstr("shard-000000.tar/0-a: truncated JPEG")));
}

}  // namespace
}  // namespace lockstep::sources
