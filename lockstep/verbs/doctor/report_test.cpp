// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/doctor/report.h"

#include <gtest/gtest.h>

namespace lockstep::verbs::doctor {
namespace {

DoctorReport sample_report() {
  return {.headline = "host: system",
          .verdict = {"No GPU."},
          .groups = {{"place", {{Mark::ok, "fine", ""}, {Mark::warn, "slow", "make fast"}}},
                     {"disks", {{Mark::wrong, "full", "empty it"}, {Mark::note, "by the way", ""}}}}};
}

TEST(DoctorReportTest, PutsTheCommandsAtTheEndTheMostImportantFirst) {
  EXPECT_EQ(to_text(sample_report()),
            "No GPU.\nhost: system\n\n"
            "place         ok  fine\n"
            "               !  slow\n\n"
            "disks         XX  full\n"
            "               .  by the way\n\n"
            "1 wrong (XX), 1 to improve (!); what fixes them:\n"
            " XX  empty it\n"
            "  !  make fast\n");
}

TEST(DoctorReportTest, SaysWhenNothingIsWrong) {
  const DoctorReport report{.headline = "h", .verdict = {}, .groups = {{"place", {{Mark::ok, "fine", ""}}}}};
  EXPECT_NE(to_text(report).find("0 wrong (XX), 0 to improve (!); nothing to fix here"), std::string::npos);
}

TEST(DoctorReportTest, FoldsLongLines) {
  DoctorReport report = sample_report();
  report.groups[0].findings[0].what = std::string(60, 'a') + " " + std::string(60, 'b');
  EXPECT_NE(to_text(report).find("\n" + std::string(18, ' ') + std::string(60, 'b')), std::string::npos);
}

TEST(DoctorReportTest, TellsProgramsTheSame) {
  const base::Json all = to_json(sample_report());
  EXPECT_EQ(all.at("wrong").as_int(), 1);
  EXPECT_EQ(all.at("findings").size(), 4u);
  EXPECT_EQ(all.at("findings").items()[2].at("mark").as_string(), "wrong");
  EXPECT_EQ(all.at("findings").items()[2].at("fix").as_string(), "empty it");
}

}  // namespace
}  // namespace lockstep::verbs::doctor
