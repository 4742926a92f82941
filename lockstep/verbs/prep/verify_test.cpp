// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/prep/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/data/decode.h"
#include "lockstep/data/shard_set.h"

namespace lockstep::verbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class VerifyTest : public testing::Test {
 protected:
  void write(const std::string& part, const std::string& key, int32_t label, const std::string& written_label) {
    base::make_folders(folder_.path() / part);
    data::ShardWriter writer(folder_.path() / part, "shard-000000");
    writer.add({key, label, 0}, {{"jpg", picture_}, {"cls", written_label}});
    data::write_shard_list(folder_.path() / part, {"", {"cat", "dog"}, {writer.finish()}});
  }
  std::vector<std::string> faults() const { return verify(folder_.path(), 1, {}).faults; }

  base::TemporaryFolder folder_;
  std::string picture_ = data::encode_jpeg(data::Image(20, 20), 90);
};

TEST_F(VerifyTest, FindsNoFaultInAGoodSet) {
  write("train", "0-a", 1, "1");
  write("validate", "1-b", 0, "0");
  const VerifyResult result = verify(folder_.path(), 1, {});
  EXPECT_THAT(result.faults, ElementsAre());
  EXPECT_EQ(result.num_shards, 2);
  EXPECT_EQ(result.num_samples, 2);
}

TEST_F(VerifyTest, NamesAKeyThatStandsTwice) {
  write("train", "0-a", 1, "1");
  write("validate", "0-a", 0, "0");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("validate/shard-000000.tar/0-a: this key stands elsewhere")));
}

TEST_F(VerifyTest, NamesALabelThatIsNotTheIndexs) {
  write("train", "0-a", 1, "0");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("0-a.cls: not the label of the index")));
  write("train", "0-a", 2, "2");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("no class of the list")));
}

TEST_F(VerifyTest, NamesAForeignIndexOfDali) {
  write("train", "0-a", 1, "1");
  base::write_file(folder_.path() / "train/shard-000000.idx", "v1.2 1\n");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("shard-000000.idx: does not tell what the tar file holds")));
}

TEST_F(VerifyTest, NamesADamagedPictureWithARightChecksum) {
  picture_ = picture_.substr(0, picture_.size() - 2);
  write("train", "0-a", 1, "1");
  EXPECT_THAT(faults(), ElementsAre(HasSubstr("shard-000000.tar/0-a: truncated JPEG")));
}

}  // namespace
}  // namespace lockstep::verbs
