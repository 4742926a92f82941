// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/paper.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep::advice {
namespace {

Paper small_paper() {
  Paper paper;
  paper.title = "A & B";
  paper.heading("Why <b>");
  paper.say("Because 3 * 4 = 12.");
  paper.list({"one", "two"});
  paper.table({{{"GPU"}, {"GB", base::Align::right}}, {{"k40|m", "12"}}, "What fits"});
  return paper;
}

TEST(PaperTest, ShowsMarkupInsteadOfObeyingIt) {
  const std::string page = to_html(small_paper());
  EXPECT_NE(page.find("<h1>A &amp; B</h1>"), std::string::npos);
  EXPECT_NE(page.find("<h2>Why &lt;b></h2>"), std::string::npos);
  EXPECT_NE(page.find("<td class=\"n\">12</td>"), std::string::npos);
  const std::string markdown = to_markdown(small_paper());
  EXPECT_NE(markdown.find("Because 3 \\* 4 = 12."), std::string::npos);
  EXPECT_NE(markdown.find("| k40\\|m | 12 |"), std::string::npos);
}

TEST(PaperTest, IsReadableInATerminal) {
  const std::string words = to_text(small_paper());
  EXPECT_NE(words.find("- two\n"), std::string::npos);
  EXPECT_NE(words.find("k40|m  12"), std::string::npos);
}

TEST(PaperTest, IsWrittenByTheEndingOfItsName) {
  const base::TemporaryFolder folder;
  write_paper((folder.path() / "a.md").string(), small_paper());
  EXPECT_TRUE(base::read_file(folder.path() / "a.md").starts_with("# A & B\n"));
  EXPECT_THROW(write_paper((folder.path() / "a.doc").string(), small_paper()), base::Error);
}

}  // namespace
}  // namespace lockstep::advice
