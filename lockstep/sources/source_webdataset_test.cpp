// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_webdataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/shards/tar.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;

std::string tar_member(const std::string& name, const std::string& content) {
  const auto header = shards::ustar_header(name, static_cast<int64_t>(content.size()));
  std::string all = std::string(header.data(), header.size()) + content;
  all.resize(static_cast<size_t>(shards::padded_to_block(static_cast<int64_t>(all.size()))), '\0');
  return all;
}

TEST(WebDatasetSourceTest, PutsMembersOfAKeyTogether) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "val-000.tar", tar_member("d/1.cls", "2\n") + tar_member("d/1.json", "{}") +
                                                      tar_member("d/1.jpg", "J") + tar_member("2.png", "P") +
                                                      std::string(1024, '\0'));
  ASSERT_TRUE(looks_like_webdataset({.path = folder.path()}));
  const auto source = open_webdataset({.path = folder.path()});
  EXPECT_THAT(source->classes(), ElementsAre("0", "1", "2"));
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"d/1", 2, Part::validate, 5},
                                             SourceSample{"2", shards::kNoLabel, Part::validate, 1}));
  EXPECT_THAT(source->load(0), ElementsAre(SourceMember{"", "J"}, SourceMember{"json", "{}"}));
}

TEST(WebDatasetSourceTest, FindsThePartAnywhereInTheName) {
  const base::TemporaryFolder folder;
  for (const char* name : {"imagenet-train-0000.tar", "imagenet-val-0000.tar"})
    base::write_file(folder.path() / name, tar_member("1.jpg", "J") + std::string(1024, '\0'));
  const auto source = open_webdataset({.path = folder.path()});
  EXPECT_EQ(source->samples()[0].part, Part::train);
  EXPECT_EQ(source->samples()[1].part, Part::validate);
}

TEST(WebDatasetSourceTest, TheFirstOfTwoImagesIsTheSamples) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "x.tar",
                   tar_member("1.jpg", "J") + tar_member("1.png", "P") + std::string(1024, '\0'));
  EXPECT_THAT(open_webdataset({.path = folder.path()})->load(0),
              ElementsAre(SourceMember{"", "J"}, SourceMember{"png", "P"}));
}

TEST(WebDatasetSourceTest, TakesOurOwnShardsWithTheirClasses) {
  const base::TemporaryFolder folder;
  base::make_folders(folder.path() / "train");
  const std::string image = image::encode_jpeg(image::Image(20, 20), 90);
  shards::ShardWriter writer(folder.path() / "train", "train-000000");
  writer.add({"00000000-a", 1, 0}, {{"jpg", image}, {"cls", "1"}});
  shards::write_shard_list(folder.path() / "train", {"train", {"cat", "dog"}, {writer.finish()}});
  const auto source = open_webdataset({.path = folder.path()});
  EXPECT_THAT(source->classes(), ElementsAre("cat", "dog"));
  EXPECT_EQ(source->samples()[0].part, Part::train);
  EXPECT_EQ(source->load(0)[0].bytes, image);
}

TEST(WebDatasetSourceTest, RefusesALabelThatIsNoNumber) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "x.tar", tar_member("1.cls", "cat") + std::string(1024, '\0'));
  EXPECT_THROW(open_webdataset({.path = folder.path() / "x.tar"}), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
