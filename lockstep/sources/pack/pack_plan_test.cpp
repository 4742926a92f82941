// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/pack_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/shards/tar.h"
#include "lockstep/sources/pack/folder_state.h"

namespace lockstep::sources {
namespace {

class ListedSource final : public Source {
 public:
  explicit ListedSource(std::vector<SourceSample> samples) { samples_ = std::move(samples); }
  std::vector<SourceMember> load(int64_t) const override { return {}; }
};

// 100 samples of class 0, 50 of class 1.
ListedSource two_classes(Part part = Part::open) {
  std::vector<SourceSample> samples;
  for (int i = 0; i < 150; ++i) samples.push_back({base::text(i, ".jpg"), i < 100 ? 0 : 1, part, 1000});
  return ListedSource(std::move(samples));
}

std::map<std::pair<Part, int32_t>, int64_t> counts(const Source& source, const std::vector<PlannedShard>& shards) {
  std::map<std::pair<Part, int32_t>, int64_t> all;
  std::set<int64_t> seen;
  for (const auto& shard : shards) {
    for (const int64_t id : shard.samples) {
      EXPECT_TRUE(seen.insert(id).second);
      ++all[{shard.part, source.samples()[static_cast<size_t>(id)].label}];
    }
  }
  EXPECT_EQ(seen.size(), source.samples().size());
  return all;
}

TEST(PrepPlanTest, SpreadsEveryClassOverThePartsAlike) {
  const ListedSource source = two_classes();
  PackRequest request;
  request.validate = 0.2;
  request.test = 0.1;
  const auto found = counts(source, plan_shards(source, request, 1));
  EXPECT_EQ(found.at({Part::train, 0}), 70);
  EXPECT_EQ(found.at({Part::validate, 0}), 20);
  EXPECT_EQ(found.at({Part::test, 0}), 10);
  EXPECT_EQ(found.at({Part::train, 1}), 35);
  EXPECT_EQ(found.at({Part::validate, 1}), 10);
  EXPECT_EQ(found.at({Part::test, 1}), 5);
}

// KITTI's images, by the share of source_kitti: what examples/kitti/job.json counts on.
TEST(PrepPlanTest, CutsKittiIntoSevenThousandAndTheRest) {
  std::vector<SourceSample> samples;
  for (int i = 0; i < 7481; ++i) samples.push_back({base::text(i, ".png"), shards::kNoLabel, Part::open, 1000});
  const ListedSource source(std::move(samples));
  PackRequest request;
  request.validate = 481.0 / 7481.0;
  for (const int64_t seed : {1, 2, 77}) {
    request.seed = seed;
    const auto found = counts(source, plan_shards(source, request, 1));
    EXPECT_EQ(found.at({Part::train, shards::kNoLabel}), 7000);
    EXPECT_EQ(found.at({Part::validate, shards::kNoLabel}), 481);
  }
}

TEST(PrepPlanTest, KeepsTheSourcesOwnPartsUnlessAskedForMore) {
  const ListedSource source = two_classes(Part::train);
  PackRequest request;
  EXPECT_EQ(counts(source, plan_shards(source, request, 1)).at({Part::train, 0}), 100);
  request.validate = 0.5;
  EXPECT_EQ(counts(source, plan_shards(source, request, 1)).at({Part::validate, 0}), 50);
}

TEST(PrepPlanTest, SmallClassesGetAValidationPartAsWell) {
  std::vector<SourceSample> samples;
  for (int i = 0; i < 240; ++i) samples.push_back({base::text(i, ".jpg"), i / 4, Part::open, 1000});
  const ListedSource source(std::move(samples));
  const auto found = counts(source, plan_shards(source, {}, 1));
  int64_t validated = 0;
  for (const auto& [position, count] : found) {
    if (position.first != Part::validate) continue;
    EXPECT_EQ(count, 1);
    validated += count;
  }
  EXPECT_EQ(validated, 24);
}

// `classes` classes of `size` samples each.
ListedSource small_classes(int classes, int size) {
  std::vector<SourceSample> samples;
  for (int i = 0; i < classes * size; ++i) samples.push_back({base::text(i, ".jpg"), i / size, Part::open, 1000});
  return ListedSource(std::move(samples));
}

TEST(PrepPlanTest, EveryClassIsTrainedOnHoweverSmallItIs) {
  struct Case {
    int classes, size;
    double validate, test;
    int64_t num_validate, num_test;  // in all
  };
  for (const Case& one : std::vector<Case>{{10, 2, 0.2, 0.2, 4, 4},    // both parts want the same classes
                                           {10, 2, 0.24, 0.24, 5, 5},  // every class gives one
                                           {12, 1, 0.1, 0, 0, 0},      // nothing to spare
                                           {12, 1, 0.6, 0, 0, 0},
                                           {10, 2, 0.5, 0.45, 10, 0},
                                           {10, 4, 0.4, 0.4, 20, 10}}) {
    const ListedSource source = small_classes(one.classes, one.size);
    PackRequest request;
    request.validate = one.validate;
    request.test = one.test;
    const auto found = counts(source, plan_shards(source, request, 1));
    int64_t num_validate = 0, num_test = 0;
    for (const auto& [position, count] : found) {
      num_validate += position.first == Part::validate ? count : 0;
      num_test += position.first == Part::test ? count : 0;
    }
    for (int label = 0; label < one.classes; ++label) EXPECT_TRUE(found.contains({Part::train, label})) << label;
    EXPECT_EQ(num_validate, one.num_validate) << one.classes << "x" << one.size << " " << one.validate;
    EXPECT_EQ(num_test, one.num_test) << one.classes << "x" << one.size << " " << one.test;
  }
}

TEST(PrepPlanTest, ALargeClassDoesNotPayForSmallOnes) {
  std::vector<SourceSample> samples;
  for (int i = 0; i < 120; ++i) samples.push_back({base::text(i, ".jpg"), i < 20 ? i : 20, Part::open, 1000});
  const ListedSource source(std::move(samples));
  PackRequest request;
  request.validate = 0.5;
  const auto found = counts(source, plan_shards(source, request, 1));
  EXPECT_EQ(found.at({Part::train, 0}), 1);
  EXPECT_EQ(found.at({Part::validate, 20}), 50);
}

TEST(PrepPlanTest, RefusesSamplesOfNoPartAmongThoseOfOne) {
  const ListedSource source({{"train/a.jpg", 0, Part::train, 1}, {"extra/b.jpg", 0, Part::open, 1}});
  try {
    plan_shards(source, {}, 1);
    FAIL() << "trained on";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("no part for 1 of 2 samples, the first is extra/b.jpg"));
  }
}

TEST(PrepPlanTest, IsFixedByTheSeed) {
  const ListedSource source = two_classes();
  PackRequest request;
  const auto first = plan_shards(source, request, 1);
  EXPECT_EQ(plan_shards(source, request, 1), first);
  request.seed = 2;
  EXPECT_NE(plan_shards(source, request, 1), first);
}

TEST(PrepPlanTest, KeepsTheSourcesOrderOnRequest) {
  const ListedSource source = two_classes(Part::train);
  PackRequest request;
  const auto shuffled = plan_shards(source, request, 1);
  request.keep_order = true;
  const auto kept = plan_shards(source, request, 1);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_TRUE(std::is_sorted(kept[0].samples.begin(), kept[0].samples.end()));
  EXPECT_FALSE(std::is_sorted(shuffled[0].samples.begin(), shuffled[0].samples.end()));
}

TEST(PrepPlanTest, EveryMemberOfADescriptionThatMayBeAbsentIsKnownAsSuch) {
  OpenedSource opened{"folder", std::make_unique<ListedSource>(two_classes())};
  PackRequest request;
  const base::Json plain = describe(request, opened);
  request.keep_order = request.source.masks = request.image.restarts = true;
  request.validate = request.test = 0.1;
  std::vector<std::string_view> optional{"source_lists_crc32c"};
  const base::Json all = describe(request, opened);
  for (const auto& member : all.members()) {
    if (!plain.find(member.key)) optional.push_back(member.key);
  }
  EXPECT_THAT(kOptionalMembers, testing::UnorderedElementsAreArray(optional));
}

TEST(PrepPlanTest, CutsShardsByTheBytesExpected) {
  const ListedSource source = two_classes();
  PackRequest request;
  request.validate = 0;
  request.shard_bytes = 100 * (512 + 1024 + 512 + 512);
  const auto shards = plan_shards(source, request, 1);
  ASSERT_EQ(shards.size(), 2u);
  EXPECT_EQ(shards[0].samples.size(), 100u);
  EXPECT_EQ(shards[1].name, "train-000001");
  EXPECT_EQ(plan_shards(source, request, 0.1).size(), 2u);
  EXPECT_EQ(plan_shards(source, request, 10).size(), 8u);
}

TEST(PrepPlanTest, KeysCanStandInAShardWhateverTheName) {
  EXPECT_EQ(key_of(12, "cats/Abyssinian_1.jpg"), "00000012-Abyssinian_1");
  EXPECT_EQ(key_of(0, "a.b c.tar.jpg"), "00000000-a_b_c_tar");
  EXPECT_EQ(key_of(123456789, "train-images#7"), "123456789-train-images_7");
  for (const std::string& name :
       {std::string(300, 'x'), std::string("\xC3\xA4/\xC3\xA4"), std::string(), std::string("../..")}) {
    EXPECT_EQ(shards::member_name_fault(key_of(5, name) + ".jpg"), "") << name;
  }
}

TEST(PrepPlanTest, RefusesToWriteIntoItsSource) {
  const base::TemporaryFolder folder;
  PackRequest request;
  request.source.path = folder.path();
  for (const char* name : {"", "inside", "in/side"}) {
    request.folder = folder.path() / name;
    EXPECT_THROW(check_request(request), base::Error) << name;
  }
  request.folder = folder.path().string() + "-beside";
  EXPECT_NO_THROW(check_request(request));
}

TEST(PrepPlanTest, RefusesSharesOutOfRange) {
  PackRequest request;
  request.validate = 0.6;
  request.test = 0.6;
  EXPECT_THROW(check_request(request), base::Error);
  request.validate = 0.2;
  EXPECT_NO_THROW(check_request(request));
  request.image.quality = 0;
  EXPECT_THROW(check_request(request), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
