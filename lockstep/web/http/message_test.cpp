// SPDX-License-Identifier: Apache-2.0
#include "lockstep/web/http/message.h"

#include <gtest/gtest.h>

namespace lockstep::web {
namespace {

TEST(MessageTest, FindsFieldsWhateverTheirCase) {
  const std::vector<NamedValue> fields{{"Content-Type", "a"}, {"X", "b"}, {"content-type", "c"}};
  EXPECT_EQ(*find_value(fields, "CONTENT-TYPE"), "a");
  EXPECT_EQ(find_value(fields, "Content"), nullptr);
}

TEST(MessageTest, AnErrorIsJsonWhateverItsWords) {
  const Response response = error_response(404, "no \"such\"\n thing");
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(base::parse_json(response.body, "answer").at("error").as_string(), "no \"such\"\n thing");
}

TEST(MessageTest, APageLoadsNothingFromElsewhere) {
  const Response response = page_response("<p>");
  const std::string* policy = find_value(response.headers, "Content-Security-Policy");
  ASSERT_TRUE(policy);
  EXPECT_NE(policy->find("default-src 'none'"), std::string::npos);
}

TEST(MessageTest, EveryStatusHasAPhrase) {
  for (const int status : {200, 303, 400, 401, 404, 413, 429, 500, 504, 299, 599}) {
    EXPECT_STRNE(reason_phrase(status), "");
  }
}

}  // namespace
}  // namespace lockstep::web
