// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/radar/odim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/sources/radar/rain_world.h"

namespace lockstep::sources {
namespace {

TEST(OdimTest, ReadsWhatItsWriterWrote) {
  const base::TemporaryFolder folder;
  RadarVolume volume = RainWorld{.seed = 4}.volume(12, 30);
  volume.sweeps[0].values[0] = kNotMeasured;
  write_odim(volume, folder.path() / "a.h5");
  const Hdf5File file(folder.path() / "a.h5");
  ASSERT_TRUE(is_odim(file));
  EXPECT_FALSE(is_odim_image(file));
  const RadarVolume seen = read_odim(file, "a.h5");
  EXPECT_EQ(seen.site, "KSYN");
  EXPECT_EQ(seen.seconds, volume.seconds);
  EXPECT_EQ(seen.latitude, 47.5);
  ASSERT_EQ(seen.sweeps.size(), 1U);
  EXPECT_EQ(seen.sweeps[0].first_gate, 500);
  EXPECT_EQ(seen.sweeps[0].azimuths, volume.sweeps[0].azimuths);
  for (size_t i = 0; i < volume.sweeps[0].values.size(); ++i) {
    const float was = volume.sweeps[0].values[i], is = seen.sweeps[0].values[i];
    if (std::isnan(was)) {
      EXPECT_TRUE(std::isnan(is));
    } else if (was == kNoEcho) {
      EXPECT_EQ(is, kNoEcho);
    } else {
      EXPECT_NEAR(is, was, 0.2501);
    }
  }
  write_odim(volume, folder.path() / "b.h5");
  EXPECT_EQ(base::read_file(folder.path() / "a.h5"), base::read_file(folder.path() / "b.h5"));
}

TEST(OdimTest, RangesBeginInKilometresBeforeVersion24AndInMetresFromThenOn) {
  const base::TemporaryFolder folder;
  const base::Path path = folder.path() / "a.h5";
  const auto first_gate = [&](const Hdf5Attribute& version, double start) {
    write_hdf5(path, {{"dataset1/data1/data", {2, 3}, "abcdef"}},
               {version,
                {"what", "object", "PVOL"},
                {"what", "date", "20240521"},
                {"what", "time", "120000"},
                {"dataset1/data1/what", "quantity", "DBZH"},
                {"dataset1/where", "nrays", "", 2},
                {"dataset1/where", "nbins", "", 3},
                {"dataset1/where", "elangle", "", 0.5},
                {"dataset1/where", "rscale", "", 500},
                {"dataset1/where", "rstart", "", start}});
    return read_odim(Hdf5File(path), "a.h5").sweeps.at(0).first_gate;
  };
  EXPECT_EQ(first_gate({"", "Conventions", "ODIM_H5/V2_2"}, 0.5), 750);
  EXPECT_EQ(first_gate({"", "Conventions", "ODIM_H5/V2_4"}, 500), 750);
  EXPECT_EQ(first_gate({"what", "version", "H5rad 2.3"}, 0.5), 750);
  EXPECT_EQ(first_gate({"what", "version", "H5rad 2.4"}, 500), 750);
  EXPECT_EQ(first_gate({"what", "version", "?"}, 0.5), 750);
}

TEST(OdimTest, WhatIsMissingIsNamed) {
  const base::TemporaryFolder folder;
  const base::Path path = folder.path() / "a.h5";
  const auto fault_of = [&](const std::vector<Hdf5Bytes>& arrays, std::vector<Hdf5Attribute> attributes) {
    for (const auto& [name, words] : {std::pair("object", "PVOL"), {"date", "20240521"}, {"time", "120000"}})
      attributes.push_back({"what", name, words});
    write_hdf5(path, arrays, attributes);
    try {
      (void)read_odim(Hdf5File(path), "a.h5");
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const Hdf5Bytes data{"dataset1/data1/data", {2, 3}, "abcdef"};
  const Hdf5Attribute quantity{"dataset1/data1/what", "quantity", "DBZH"};
  EXPECT_THAT(fault_of({data}, {}), testing::HasSubstr("no reflectivity in it"));
  EXPECT_THAT(fault_of({data}, {quantity}), testing::HasSubstr("has no number 'nrays'"));
  EXPECT_THAT(fault_of({data}, {quantity, {"dataset1/where", "nrays", "", 2}, {"dataset1/where", "nbins", "", 4}}),
              testing::HasSubstr("is no array of 2 x 4"));
}

TEST(OdimTest, ACompositeOfRatesBecomesReflectivity) {
  const base::TemporaryFolder folder;
  write_hdf5(folder.path() / "c.h5", {{"dataset1/data1/data", {1, 3}, std::string("\x00\x0a\xff", 3)}},
             {{"what", "object", "COMP"},
              {"what", "date", "20240521"},
              {"what", "time", "120000"},
              {"dataset1/what", "quantity", "RATE"},
              {"dataset1/what", "gain", "", 0.1},
              {"dataset1/what", "offset", "", 0},
              {"dataset1/what", "nodata", "", 255},
              {"dataset1/what", "undetect", "", 0},
              {"where", "xscale", "", 2}});
  const Hdf5File file(folder.path() / "c.h5");
  ASSERT_TRUE(is_odim_image(file));
  const OdimImage image = read_odim_image(file, "c.h5");
  EXPECT_EQ(image.cell, 2000);
  EXPECT_EQ(image.values[0], kNoEcho);
  EXPECT_NEAR(image.values[1], 23.0103, 1e-3);  // 1 mm/h
  EXPECT_TRUE(std::isnan(image.values[2]));
}

}  // namespace
}  // namespace lockstep::sources
