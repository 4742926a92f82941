// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/synthesize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/sources/pack/pack.h"
#include "lockstep/sources/pack/verify.h"
#include "lockstep/sources/source.h"

namespace lockstep::sources {
namespace {

class ScenesTest : public testing::TestWithParam<const char*> {
 protected:
  base::TemporaryFolder folder_;
  ScenesRequest request_{.kind = GetParam(),
                         .folder = folder_.path() / "drawn",
                         .count = 30,
                         .classes = 4,
                         .image_size = 48,
                         .threads = 2};
};

INSTANTIATE_TEST_SUITE_P(Kinds, ScenesTest, testing::Values("kitti", "coco", "captions"));

TEST_P(ScenesTest, CanBePreparedLikeTheRealOne) {
  const Dataset drawn = prepare_scenes(request_, {});
  EXPECT_EQ(drawn.num_train, 24);
  EXPECT_TRUE(prepare_scenes(request_, {}).was_complete);
  PackRequest pack_request;
  pack_request.source.path =
      std::string(GetParam()) == "captions" ? request_.folder / "captions.json" : request_.folder;
  pack_request.folder = folder_.path() / "set";
  pack_request.threads = 2;
  const Packed packed = pack(pack_request, {});
  EXPECT_EQ(packed.dataset.at("source_format").as_string(), GetParam());
  EXPECT_EQ(packed.dataset.at("num_unreadable").as_int(), 0);
  const VerifyResult verified = verify(pack_request.folder, 2, {});
  EXPECT_EQ(verified.faults, std::vector<std::string>{});
  EXPECT_EQ(verified.num_samples, 30);
  if (std::string(GetParam()) != "kitti") {
    EXPECT_EQ(packed.dataset.at("parts").at("validate").at("samples").as_int(), 6);
  }
}

TEST_P(ScenesTest, TheBytesDoNotDependOnThreads) {
  const std::string first = prepare_scenes(request_, {}).fingerprint;
  request_.folder = folder_.path() / "again";
  request_.threads = 1;
  EXPECT_EQ(prepare_scenes(request_, {}).fingerprint, first);
}

TEST_P(ScenesTest, RefusesImpossibleNumbers) {
  request_.classes = 9;
  EXPECT_THROW(prepare_scenes(request_, {}), base::Error);
}

}  // namespace
}  // namespace lockstep::sources
