// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/report/live.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/file.h"
#include "lockstep/run/journal.h"

namespace lockstep::verbs::report {
namespace {

using testing::HasSubstr;

web::Response ask(const web::Handler& handler, const std::string& path, std::vector<web::NamedValue> query = {}) {
  web::Response got;
  handler({.method = "GET", .path = path, .query = std::move(query)},
          [&](web::Response answer) { got = std::move(answer); });
  return got;
}

TEST(LiveReportTest, AnswersWithThePageAndThenOnlyWithWhatIsNew) {
  const base::TemporaryFolder temporary;
  run::Journal journal(run::RunPaths{temporary.path()}.journal());
  journal.append("start", base::parse_json(R"({"name":"</script>x"})", "test"));
  journal.append("step", base::parse_json(R"({"step":1,"loss":2})", "test"));
  const auto handler = live_handler(std::make_shared<watching::RunWatch>(run::RunPaths{temporary.path()}));
  const auto page = ask(handler, "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_THAT(page.body, HasSubstr("\"steps\":[{\"step\":1"));
  EXPECT_THAT(page.body, testing::Not(HasSubstr("</script>x")));
  const auto news =
      base::parse_json(ask(handler, "/run.json", {{"voids", "0"}, {"steps", "1"}, {"evaluations", "0"}}).body, "test");
  EXPECT_FALSE(news.at("reset").as_bool());
  EXPECT_EQ(news.at("steps").size(), 0U);
  EXPECT_EQ(ask(handler, "/run.json", {{"steps", "-9x"}}).status, 200);
  for (const char* other : {"/journal.jsonl", "/run.json/x", "/favicon.ico"})
    EXPECT_EQ(ask(handler, other).status, 404);
}

TEST(LiveReportTest, SaysHowToGetThereThroughATunnel) {
  EXPECT_THAT(live_words("login1", 4711, "abc"), HasSubstr("http://127.0.0.1:4711/?token=abc\n"));
  EXPECT_THAT(live_words("login1", 4711, "abc"), HasSubstr("ssh -L 4711:127.0.0.1:4711 login1 "));
}

}  // namespace
}  // namespace lockstep::verbs::report
