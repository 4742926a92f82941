// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/task_sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::spec {
namespace {

TEST(TaskSectionsTest, EachIsNamedAsItsTask) {
  Table<Job> table("job", "");
  const Section section = nest_task_sections(table).done();
  EXPECT_GE(section.fields.size(), 8U);
  for (const Field& field : section.fields) {
    EXPECT_EQ(field.key, field.section->name);
    EXPECT_THAT(choices_of(Task{}), testing::Contains(field.key));
  }
}

TEST(TaskSectionsTest, TheJobHasThem) {
  for (const char* name : {"regress", "text"}) EXPECT_NE(job_section().find(name), nullptr) << name;
}

}  // namespace
}  // namespace lockstep::spec
