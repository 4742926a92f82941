// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/project.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::spec {
namespace {

const char* const kSmall = R"({"name": "moods", "centre": {"name": "HILDA"}, "wanted": "a100-80",
  "experiments": [{"name": "train", "job": "job.json", "runs": 3}]})";

std::string refusal(const std::string& document) {
  try {
    parse_project(base::parse_json(document, "project.json"));
  } catch (const base::Error& error) {
    return error.message();
  }
  return "";
}

TEST(ProjectTest, ReadsASmallDocumentWithItsDefaults) {
  const Project project = parse_project(base::parse_json(kSmall, "project.json"));
  EXPECT_EQ(project.experiments.at(0).runs, 3);
  EXPECT_EQ(project.experiments.at(0).seeds, 1);
  EXPECT_EQ(project.centre.unit, GrantUnit::gpu_hour);
  EXPECT_EQ(parse_project(to_json(project)), project);
}

TEST(ProjectTest, RefusesWhatCannotBePlanned) {
  EXPECT_THAT(refusal(R"({"name": "moods", "centre": {"name": "x"}, "wanted": "h200"})"),
              testing::HasSubstr("no experiment"));
  EXPECT_THAT(refusal(R"({"name": "m", "centre": {"name": "x"}, "wanted": "h200",
     "experiments": [{"name": "t", "job": "j.json"}], "claims": [{"says": "it fits", "kind": "fits"}]})"),
              testing::HasSubstr("claims[0].on"));
  EXPECT_THAT(refusal(R"({"name": "m", "centre": {"name": "x"}, "wantd": "h200"})"), testing::HasSubstr("wanted"));
}

TEST(ProjectTest, FindsJobsBesideTheDocument) {
  const base::TemporaryFolder folder;
  base::write_file(folder.path() / "project.json", kSmall);
  EXPECT_EQ(load_project(folder.path() / "project.json").experiments.at(0).job, (folder.path() / "job.json").string());
}

}  // namespace
}  // namespace lockstep::spec
