// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/submit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/fake_scheduler.h"

namespace lockstep::chain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SubmitTest : public testing::Test {
 protected:
  SubmitTest() {
    const std::string calls = (folder_.path() / "calls").string();
    const std::string number =
        "for word; do [ -f \"$word\" ] && read -r word < \"$word\"; all=\"$all$word \"; done; echo \"$all\" >> '" +
        calls + "'; n=0; while read -r _; do n=$((n+1)); done < '" + calls + "'; ";
    site_.install_script("sbatch", number + "echo $n");
    request_.run = folder_.path() / "run";
    request_.job.name = "pets";
    prepared_.script = "#!/bin/bash\n";
    prepared_.terms.name = "pets-0a1b2c";
    prepared_.terms.submit_from = spec::SubmitFrom::login;
    prepared_.queue_now = 3;
  }

  base::TemporaryFolder folder_;
  site::FakeScheduler site_;
  SubmitRequest request_;
  Prepared prepared_;
};

TEST_F(SubmitTest, QueuesAllLinksUnderOneName) {
  EXPECT_THAT(submit(request_, prepared_).jobs, ElementsAre("1", "2", "3"));
  const std::string line = "--parsable --dependency=singleton #!/bin/bash \n";  // the script itself
  EXPECT_EQ(base::read_file(folder_.path() / "calls"), line + line + line);
  EXPECT_THAT(read_chain(request_.run).queued, ElementsAre("1", "2", "3"));
  EXPECT_EQ(base::read_file(request_.run / "submit.sh"), "#!/bin/bash\n");
}

TEST_F(SubmitTest, LeavesNothingThatOthersCanWriteToWhateverTheUmask) {
  const mode_t before = ::umask(0);
  submit(request_, prepared_);
  ::umask(before);
  const auto others = std::filesystem::perms::group_write | std::filesystem::perms::others_write;
  for (const base::Path& path : {request_.run, request_.run / "submit.sh", request_.run / "chain.jsonl"}) {
    EXPECT_EQ(std::filesystem::status(path).permissions() & others, std::filesystem::perms::none) << path;
  }
}

TEST_F(SubmitTest, QueuesThemBehindEachOtherOnPbs) {
  prepared_.terms.scheduler = site::SchedulerName::pbs;
  site_.install_recorded({"qsub -W depend=afterany:38.n1 * => qsub -N b -W depend=afterany:38.n1 link.sh",
                          "qsub -W depend=afterany:39.n1 * => qsub -N c -W depend=afterany:39.n1 link.sh",
                          "qsub * => qsub -N a link.sh"});
  EXPECT_THAT(submit(request_, prepared_).jobs, ElementsAre("38.n1", "39.n1", "40.n1"));
  EXPECT_EQ(site_.unrecorded_calls(), "");
}

TEST_F(SubmitTest, QueuesTheFirstLinkAloneWhereJobsQueueTheNext) {
  prepared_.terms.submit_from = spec::SubmitFrom::job;
  prepared_.queue_now = 1;
  EXPECT_THAT(submit(request_, prepared_).jobs, ElementsAre("1"));
  EXPECT_THAT(base::read_file(folder_.path() / "calls"), testing::Not(HasSubstr("dependency")));
}

TEST_F(SubmitTest, ClosesTheChainWhenTheSchedulerRefuses) {
  site_.install_script("sbatch", "echo 'sbatch: error: Invalid qos specification' >&2; exit 1");
  EXPECT_THROW(submit(request_, prepared_), base::Error);
  EXPECT_EQ(read_chain(request_.run).over, "refused");
}

TEST_F(SubmitTest, LeavesAShorterChainWhereASiteLimitsTheJobs) {
  const std::string count = "echo x >> '" + (folder_.path() / "n").string() +
                            "'; n=0; while read -r _; do n=$((n+1)); "
                            "done < '" +
                            (folder_.path() / "n").string() + "'; ";
  site_.install_script("sbatch",
                       count + "[ $n -lt 3 ] && echo $n && exit; echo 'error: AssocMaxSubmitJobLimit' >&2; exit 1");
  const Queued queued = submit(request_, prepared_);
  EXPECT_THAT(queued.jobs, ElementsAre("1", "2"));
  EXPECT_EQ(queued.refusal, "error: AssocMaxSubmitJobLimit");
  const Chain chain = read_chain(request_.run);
  EXPECT_EQ(chain.over, "");
  EXPECT_EQ(chain.first_refusal, "error: AssocMaxSubmitJobLimit");
}

}  // namespace
}  // namespace lockstep::chain
