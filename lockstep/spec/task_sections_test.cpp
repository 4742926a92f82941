// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/task_sections.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lockstep/spec/fields.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {
namespace {

TEST(TaskSectionsTest, EachStandsInTheJobUnderTheNameOfItsTask) {
  for (const Section* section : {&regress_section(), &multilabel_section(), &detect_section(), &instances_section(),
                                 &nowcast_section(), &segment_section(), &caption_section(), &text_section()}) {
    const Field* field = job_section().find(section->name);
    ASSERT_NE(field, nullptr) << section->name;
    EXPECT_EQ(field->section, section);
    const auto tasks = choices_of(Task{});
    EXPECT_NE(std::find(tasks.begin(), tasks.end(), section->name), tasks.end()) << section->name;
  }
}

}  // namespace
}  // namespace lockstep::spec
