// SPDX-License-Identifier: Apache-2.0
#include "lockstep/base/renamed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/arguments.h"
#include "lockstep/base/error.h"
#include "lockstep/base/json.h"

namespace lockstep::base {
namespace {

using testing::HasSubstr;

template <class Call>
std::string complaint(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(RenamedTest, AnOldOptionIsAnErrorThatSaysTheNewOne) {
  const CommandLine prep{"prep", "SOURCE", "", {{"--repair", "", ""}}, ""};
  EXPECT_THAT(complaint([&] { parse_arguments(prep, {"--mend"}); }), HasSubstr("--mend is called --repair now"));
  const CommandLine other{"train", "JOB", "", {{"--repair", "", ""}}, ""};
  EXPECT_THAT(complaint([&] { parse_arguments(other, {"--mend"}); }), HasSubstr("has no option '--mend'"));
}

TEST(RenamedTest, AnOldKeyIsAnErrorThatSaysTheNewOne) {
  const Json note = parse_json(R"({"pictures": 3, "without_picture": ".npy"})", "train-000000.json");
  EXPECT_THAT(complaint([&] { (void)note.at("images"); }),
              HasSubstr("train-000000.json:1:1: the key 'pictures' is called 'images' now"));
  EXPECT_THAT(complaint([&] { (void)note.string_or("without_image", ""); }),
              HasSubstr("the key 'without_picture' is called 'without_image' now"));
  EXPECT_THAT(complaint([&] { (void)note.at("samples"); }), HasSubstr("the key 'samples' is missing"));
  EXPECT_EQ(note.int_or("samples", 7), 7);
}

}  // namespace
}  // namespace lockstep::base
