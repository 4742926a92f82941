// SPDX-License-Identifier: Apache-2.0
#include "lockstep/step/feeder.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep::step {
namespace {

class FeederTest : public testing::Test {
 protected:
  FeederTest() {
    options_.data.image_size = 8;
    options_.global_batch = 7;
  }
  loader::Collection collection_ = loader::synthetic_collection(23, 3);
  loader::LoaderOptions options_;
};

TEST_F(FeederTest, GivesTheBatchesOfTheLoaderOfEveryKindOfPixels) {
  for (const auto pixels : {spec::Pixels::fp32, spec::Pixels::bf16, spec::Pixels::uint8}) {
    options_.data.pixels = pixels;
    const auto plain = loader::make_loader(collection_, options_, {1, 0, 0});
    const auto ahead = loader::make_loader(collection_, options_, {1, 0, 0});
    Feeder feeder(*ahead, at::kCPU);
    for (int i = 0; i < 9; ++i) {  // two epochs of 7, 7, 7 and 2, and one more
      const loader::Batch batch = plain->next();
      const Samples expected = to_samples(batch, at::kCPU), samples = feeder.next();
      EXPECT_TRUE(at::equal(samples.fields.at("image"), expected.fields.at("image")));
      EXPECT_EQ(samples.fields.at("image").scalar_type(), expected.fields.at("image").scalar_type());
      EXPECT_TRUE(at::equal(samples.fields.at("label"), expected.fields.at("label")));
      EXPECT_EQ(samples.step, expected.step);
      EXPECT_EQ(samples.epoch, expected.epoch);
      EXPECT_EQ(samples.global_size, expected.global_size);
    }
  }
}

TEST_F(FeederTest, EndsWithTheEvaluation) {
  options_.use = loader::Use::evaluate;
  const auto loader = loader::make_loader(collection_, options_, {1, 0, 0});
  Feeder feeder(*loader, at::kCPU);
  for (int i = 0; i < 4; ++i) EXPECT_GT(feeder.next().global_size, 0);
  EXPECT_EQ(feeder.next().global_size, 0);
  EXPECT_EQ(feeder.next().global_size, 0);
}

TEST_F(FeederTest, PassesTheLoadersErrorOn) {
  const base::TemporaryFolder folder;
  for (const char* name : {"a/1.jpg", "b/2.jpg"}) {
    base::make_folders((folder.path() / name).parent_path());
    base::write_file(folder.path() / name, "no image");
  }
  const loader::Collection files = loader::scan_folder(folder.path().string());
  const auto loader = loader::make_loader(files, options_, {1, 0, 0});
  Feeder feeder(*loader, at::kCPU);
  EXPECT_THROW(feeder.next(), base::Error);
}

TEST_F(FeederTest, MayBeLeftAtAnyTime) {
  const auto loader = loader::make_loader(collection_, options_, {1, 0, 0});
  for (int i = 0; i < 5; ++i) {
    Feeder feeder(*loader, at::kCPU);
    if (i % 2 == 0) (void)feeder.next();
  }
}

}  // namespace
}  // namespace lockstep::step
