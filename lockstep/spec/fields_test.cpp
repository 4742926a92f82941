// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/fields.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/spec/job.h"
#include "lockstep/spec/machine.h"

namespace lockstep::spec {
namespace {

void expect_sound(const Section& section) {
  EXPECT_FALSE(section.help.empty()) << section.name;
  std::set<std::string> keys;
  for (const auto& field : section.fields) {
    EXPECT_TRUE(keys.insert(field.key).second) << "twice: " << field.key;
    EXPECT_FALSE(field.help.empty()) << field.key;
    EXPECT_EQ(field.help.find('\n'), std::string::npos) << field.key;
    EXPECT_EQ(field.type == Type::choice, !field.choices.empty()) << field.key;
    if (field.section) expect_sound(*field.section);
  }
  for (const auto& key : section.one_of) EXPECT_TRUE(keys.count(key)) << key;
}

TEST(FieldsTest, EveryTableIsSound) {
  expect_sound(job_section());
  expect_sound(machine_section());
}

TEST(FieldsTest, DefaultsComeFromTheStruct) {
  const Section& training = *job_section().find("training")->section;
  EXPECT_EQ(training.find("global_batch")->otherwise.as_int(), Training{}.global_batch);
  EXPECT_EQ(training.find("precision")->otherwise.as_string(), "fp32");
  EXPECT_EQ(job_section().find("limits")->section->find("walltime")->otherwise.as_string(), "none");
  EXPECT_EQ(job_section().find("nothing"), nullptr);
}

TEST(FieldsTest, ChecksReadAsSentences) {
  EXPECT_EQ(check_text(positive), "greater than 0");
  EXPECT_EQ(check_text(below_one), "at least 0 and less than 1");
  EXPECT_EQ(check_text(required), "required");
  EXPECT_EQ(check_text(anything), "");
}

TEST(FieldsTest, LocatesTheInnermostPartThatExists) {
  const base::Json job = base::parse_json("{\"a\": {\n \"b\": [1,\n 2]}}", "x");
  EXPECT_EQ(locate(job, "a.b[1]").where(), "x:3:2");
  EXPECT_EQ(locate(job, "a.b[7]").where(), "x:2:7");
  EXPECT_EQ(locate(job, "a.c.d").where(), "x:1:7");
}

TEST(FieldsTest, ManyProblemsAreCounted) {
  Problems problems;
  for (int i = 0; i < 25; ++i) problems.add(std::string("x"), "k", "is bad", "");
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("25 problems"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("and 5 more"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::spec
