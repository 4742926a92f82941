// SPDX-License-Identifier: Apache-2.0
#include "lockstep/measure/loader_read.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/measure/bench_images.h"

namespace lockstep::measure {
namespace {

TEST(LoaderReadTest, SeesEverySampleOnceAnEpochWithinTheBudget) {
  const base::TemporaryFolder folder;
  const ImageSet images = write_images(folder.path(), 20, "");
  ReadBench bench;
  bench.folder = images.restarted_tars.string();
  bench.data.image_size = 64;
  bench.data.memory = 64 << 20;
  bench.batch = 8;
  bench.epochs = 3;
  for (const auto order : {spec::SampleOrder::full, spec::SampleOrder::windows}) {
    bench.data.order = order;
    bench.data.extent = 200000;
    const ReadFigures figures = bench_reading(bench);
    ASSERT_EQ(figures.epochs.size(), 3u);
    for (const auto& epoch : figures.epochs) EXPECT_EQ(epoch.missed, 0);
    // Of so few samples an epoch may be read ahead while the one before is delivered: count over all.
    EXPECT_GT(figures.epochs[0].reads + figures.epochs[1].reads + figures.epochs[2].reads, 0);
    EXPECT_LT(figures.peak_bytes(), bench.data.memory);
    const base::Json rows = reading_rows(bench, figures, "lockstep bench loader");
    EXPECT_EQ(rows.items()[0].at("samples_not_seen_once").as_int(), 0);
  }
  bench.folder = images.folder.string();
  EXPECT_THROW(bench_reading(bench), base::Error);
}

}  // namespace
}  // namespace lockstep::measure
