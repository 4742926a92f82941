// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/bad_samples.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/training/small_training.h"

namespace lockstep::training {
namespace {

// A file of each rank's own that cannot be read, and one with a line end in its name.
TEST(BadSamplesTest, ANameIsToldOnceAndOnOneLine) {
  SmallTraining small;
  const base::Path images = small.folder.path() / "images";
  for (int i = 0; i < 12; ++i) {
    const auto file = images / base::text("class-", i % 3) / base::text(100 + i, ".jpg");
    base::make_folders(file.parent_path());
    base::write_file(file, image::encode_jpeg(image::Image(8, 8), 90));
  }
  base::write_file(images / "class-0" / "x\nskipped y.jpg", "no image");
  base::write_file(images / "class-1" / "z.jpg", "no image");
  small.job.data.train = images.string();
  small.job.data.validate.clear();
  small.job.data.samples = 0;
  small.job.data.on_bad_sample = spec::OnBadSample::skip;
  small.job.training.global_batch = 14;  // all of them
  std::set<std::string> told[2];
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainingContext context(small.job, small.options, group);
    for (int epoch = 0; epoch < 2; ++epoch) {
      const auto loader =
          loader::make_loader(context.collections.train,
                              loader::training_loader(context.job, context.loader_settings()), context.data_state());
      loader->next();
      report_bad_samples(context, loader.get());
      report_bad_samples(context, loader.get());
    }
    report_bad_samples(context, nullptr);
    told[group.rank()] = context.state.bad_files;
  });
  EXPECT_EQ(told[0].size(), 2U);
  EXPECT_EQ(told[0], told[1]);
  EXPECT_EQ(small.events("bad_sample").size(), 2U);
  ASSERT_EQ(small.said.size(), 2U);
  for (const auto& line : small.said) {
    EXPECT_TRUE(line.starts_with("skipped ")) << line;
    EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 0) << line;
  }
}

}  // namespace
}  // namespace lockstep::training
