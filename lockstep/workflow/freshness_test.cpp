// SPDX-License-Identifier: Apache-2.0
#include "lockstep/workflow/freshness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/workflow/small_workflow.h"

namespace lockstep::workflow {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kTwoStages = R"(
    "make": {"command": ["sh", "make.sh", "{input}", "{output}"], "inputs": ["source"], "outputs": ["made"]},
    "use": {"command": ["cp", "{input}", "{output}"], "inputs": ["made"], "outputs": ["used"]})";

class FreshnessTest : public testing::Test {
 protected:
  FreshnessTest() : small_(kTwoStages) {
    base::write_file("make.sh", "cat $1 > $2\n");
    base::write_file("source", "one");
  }
  std::vector<std::string> reasons(size_t stage) {
    Digests digests(small_.paths().digests());
    return look_at(small_.workflow.stages[stage], small_.paths(), digests).reasons;
  }
  SmallWorkflow small_;
};

TEST_F(FreshnessTest, SaysWhatChanged) {
  EXPECT_THAT(reasons(0), ElementsAre("never ran"));
  EXPECT_EQ(small_.run().count(StageOutcome::What::ran), 2);
  EXPECT_THAT(reasons(0), IsEmpty());
  base::write_file("source", "two");
  EXPECT_THAT(reasons(0), ElementsAre("input source changed"));
  base::write_file("source", "one");
  EXPECT_THAT(reasons(0), IsEmpty());  // by content, whatever the time
  base::write_file("make.sh", "cat $1 $1 > $2\n");
  EXPECT_THAT(reasons(0), ElementsAre("file make.sh changed"));
  base::write_file("make.sh", "cat $1 > $2\n");
  base::write_file("made", "by hand");
  EXPECT_THAT(reasons(0), ElementsAre("output made was changed by somebody else"));
  std::filesystem::remove("made");
  EXPECT_THAT(reasons(0), ElementsAre("output made is missing"));
  EXPECT_THAT(reasons(1), ElementsAre("input made is gone"));
  small_.describe(R"("make": {"command": ["sh", "make.sh", "{input}", "{output}", "more"],
                              "inputs": ["source"], "outputs": ["made"]})");
  EXPECT_THAT(reasons(0), testing::Contains("its command changed, was: sh make.sh '{input}' '{output}'"));
}

TEST_F(FreshnessTest, AFileThatTheStageWritesBesideItsOutputsIsNoReason) {
  small_.describe(
      R"("make": {"command": ["sh", "-c", "date +%N > beside; echo x > {output}", "beside"], "outputs": ["made"]})");
  small_.run();
  EXPECT_THAT(reasons(0), IsEmpty());
  base::write_file("beside", "other");
  EXPECT_THAT(reasons(0), IsEmpty());
}

// By an editor, say: what it has made rests on the old script, or on both.
TEST_F(FreshnessTest, AScriptThatIsEditedWhileItRunsIsAReason) {
  small_.describe(
      R"("make": {"command": ["sh", "-c", "test -e done || echo '# edited' >> make.sh; touch done; echo x > {output}",
                                          "make.sh"], "outputs": ["made"]})");
  small_.run();
  EXPECT_THAT(reasons(0), ElementsAre("file make.sh changed"));
  small_.run();
  EXPECT_THAT(reasons(0), IsEmpty());
  base::write_file("make.sh", "cat $1 $1 > $2\n");
  EXPECT_THAT(reasons(0), ElementsAre("file make.sh changed"));  // later edits count as well
}

TEST_F(FreshnessTest, AFileThatChangesInEveryRunIsItsOwn) {
  base::write_file("beside", "0");
  small_.describe(
      R"("make": {"command": ["sh", "-c", "date +%N >> beside; echo x > {output}", "beside"], "outputs": ["made"]})");
  small_.run();
  EXPECT_THAT(reasons(0), ElementsAre("file beside changed"));  // by itself or by somebody else: once more
  EXPECT_EQ(read_record(small_.paths(), "make")->changed, std::vector<std::string>{"beside"});
  small_.run();
  EXPECT_THAT(reasons(0), IsEmpty());
  base::write_file("beside", "other");
  EXPECT_THAT(reasons(0), IsEmpty());
}

TEST_F(FreshnessTest, AnOutputThatAWordNamesByItsWholePathIsNoFile) {
  const std::string made = (small_.folder() / "made").string();
  base::write_file("made", "before");
  small_.describe(
      base::text(R"("make": {"command": ["sh", "-c", "date +%N > $0", ")", made, R"("], "outputs": ["made"]})"));
  small_.run();
  EXPECT_THAT(reasons(0), IsEmpty());
}

TEST_F(FreshnessTest, PlansInOrderAndSaysWhatOnlyMayRun) {
  using What = StagePlan::What;
  small_.run();
  base::write_file("source", "two");
  Digests digests(small_.paths().digests());
  const auto plans = plan_stages(small_.workflow, small_.paths(), digests);
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_EQ(plans[0].what, What::runs);
  EXPECT_EQ(plans[1].what, What::may_run);
  EXPECT_THAT(plans[1].why, HasSubstr("if make gives another content"));
}

TEST_F(FreshnessTest, NamesInputsThatNobodyWrites) {
  std::filesystem::remove("source");
  Digests digests(small_.paths().digests());
  EXPECT_EQ(plan_stages(small_.workflow, small_.paths(), digests)[0].what, StagePlan::What::cannot);
  try {
    check_files(small_.workflow, "workflow.json");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stages.make.inputs: 'source' is not there, and no stage writes it"));
  }
}

TEST_F(FreshnessTest, RefusesAnOutputThatHoldsTheWorkflow) {
  for (const auto& path : std::vector<std::string>{".", "..", small_.folder().string()}) {
    small_.describe(base::text(R"("a": {"command": ["true"], "outputs": [")", path, "\"]}"));
    EXPECT_THROW(check_files(small_.workflow, "workflow.json"), base::Error) << path;
  }
}

}  // namespace
}  // namespace lockstep::workflow
