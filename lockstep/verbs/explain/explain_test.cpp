// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/explain/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep::verbs::explain {
namespace {

using testing::HasSubstr;

std::string explain_complaint(const std::string& key) {
  try {
    explain_key(key);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.message();
  }
  return "";
}

TEST(ExplainTest, DescribesAKey) {
  EXPECT_EQ(explanation_text(explain_key("training.global_batch")),
            "training.global_batch: samples per optimizer step, all ranks together\n"
            "  document  job\n"
            "  type      integer\n"
            "  unit      samples\n"
            "  default   32\n"
            "  check     at least 1 and at most 16777216\n");
  EXPECT_THAT(explanation_text(explain_key("training.precision")), HasSubstr("one of    fp32, tf32, bf16, amp"));
}

TEST(ExplainTest, ListsTheFieldsOfASection) {
  const std::string section = explanation_text(explain_key("training"));
  EXPECT_THAT(section, HasSubstr("exactly one of [\"epochs\",\"steps\",\"phases\"]"));
  EXPECT_THAT(section, HasSubstr("\n  global_batch "));
  EXPECT_THAT(explanation_text(explain_key("machine")), HasSubstr("\n  memory_per_node "));
}

TEST(ExplainTest, FindsKeysByTheirLastPartAndWithTheirDocument) {
  EXPECT_EQ(explain_key("lr").at("key").as_string(), "training.optimizer.lr");
  EXPECT_EQ(explain_key("machine.links.inter.rate").at("document").as_string(), "machine");
  EXPECT_EQ(explain_key("job.training.phases[0].epochs").at("unit").as_string(), "epochs");
  EXPECT_THAT(explain_complaint("epochs"), HasSubstr("name one: training.epochs, training.phases.epochs"));
}

TEST(ExplainTest, AKeyThatPeopleWriteComesBeforeOneOfThePlan) {
  EXPECT_EQ(explain_key("precision").at("key").as_string(), "training.precision");
  EXPECT_EQ(explain_key("plan.options.levers.precision").at("document").as_string(), "plan");
  EXPECT_THAT(explanation_text(explain_key("total_seconds")), HasSubstr("options.total_seconds: with start-ups"));
  EXPECT_THAT(explanation_text(explain_key("plan.options.total_seconds")), HasSubstr("\n  or        null\n"));
  EXPECT_FALSE(explain_key("plan.parameters").contains("default"));
}

TEST(ExplainTest, NamesTheNearestKeyOfATypo) {
  EXPECT_THAT(explain_complaint("training.global_bach"), HasSubstr("did you mean training.global_batch"));
  EXPECT_THAT(explain_complaint("momentun"), HasSubstr("training.optimizer.momentum"));
  EXPECT_THAT(explain_complaint("zzzzzzzz"), HasSubstr("`lockstep explain` lists the documents"));
  EXPECT_THAT(explain_complaint("learning_rate"), HasSubstr("lockstep explain training.optimizer.lr"));
  EXPECT_THAT(explain_complaint("training.batch_size"), HasSubstr("here it is called training.global_batch"));
  EXPECT_THROW(document_section("plans"), base::Error);
}

TEST(ExplainTest, OverviewNamesAllDocuments) {
  EXPECT_THAT(overview_text(), HasSubstr("job: what to train"));
  EXPECT_THAT(overview_text(), HasSubstr("machine: where to train"));
  EXPECT_EQ(explain_all().size(), 6u);
  EXPECT_THAT(overview_text(), HasSubstr("plan: what a job needs"));
}

TEST(ExplainTest, ConfigPageIsUpToDate) {
  EXPECT_TRUE(base::read_file("docs/config.md") == config_markdown())
      << "run: build/bin/lockstep explain --markdown > docs/config.md";
}

}  // namespace
}  // namespace lockstep::verbs::explain
