// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::weights {
namespace {

using std::string_literals::operator""s;

Pickle pickle_of(const std::string& bytes, size_t max_values = 1000) {
  static constexpr std::string_view kAllowed[] = {"collections.OrderedDict"};
  return read_pickle(std::as_bytes(std::span(bytes.data(), bytes.size())), kAllowed, "p", max_values);
}

std::string pickle_complaint(const std::string& bytes) {
  try {
    pickle_of(bytes);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "accepted";
}

TEST(PickleTest, ReadsScalars) {
  const Pickle pickle =
      pickle_of("\x80\x02(J\xfe\xff\xff\xffK\x07M\x01\x02\x8a\x02\x00\xffG\x3f\xe0\x00\x00\x00\x00\x00\x00\x88Nt."s);
  const auto& items = pickle.at(pickle.root).items;
  ASSERT_EQ(items.size(), 7U);
  EXPECT_EQ(pickle.at(items[0]).integer, -2);
  EXPECT_EQ(pickle.at(items[1]).integer, 7);
  EXPECT_EQ(pickle.at(items[2]).integer, 513);
  EXPECT_EQ(pickle.at(items[3]).integer, -256);
  EXPECT_EQ(pickle.at(items[4]).real, 0.5);
  EXPECT_EQ(pickle.at(items[5]).kind, PickleValue::Kind::boolean);
  EXPECT_EQ(pickle.at(items[6]).kind, PickleValue::Kind::none);
}

TEST(PickleTest, RefersToOneValueTwiceWithoutACopy) {
  const Pickle pickle = pickle_of("\x80\x02X\x02\x00\x00\x00hiq\x00h\x00\x86."s);
  const auto& items = pickle.at(pickle.root).items;
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(pickle.at(items[0]).text, "hi");
}

TEST(PickleTest, StopsBehindOnePickle) {
  EXPECT_EQ(pickle_of("\x80\x02N.more").bytes_read, 4U);
}

TEST(PickleTest, RefusesEveryNameThatIsNotAllowed) {
  EXPECT_EQ(pickle_complaint("\x80\x02"
                             "ccollections\nOrderedDict\n)R."),
            "accepted");
  EXPECT_THAT(pickle_complaint("\x80\x02"
                               "cposix\nsystem\n."),
              testing::HasSubstr("asks to run posix.system"));
  EXPECT_THAT(pickle_complaint("\x80\x02"
                               "cevil\x1b[2J\nname\n."),
              testing::HasSubstr("\\u001b"));
  EXPECT_THAT(pickle_complaint("\x80\x02"
                               "c" +
                               std::string(5000, 'a')),
              testing::HasSubstr("never ends"));
}

TEST(PickleTest, RefusesMalformedStacks) {
  for (const char* bytes : {".", "t.", "h\x05.", "s.", "q\x01.", "(.", "N)R.", "NN.", "}Nu.", "}(Nu.", "]Ns.", "NNb.",
                            "X\xff\xff\xff\xff.", "\x8a\xff.", "\x80\x63N.", "Q.", "R.", "\x93."}) {
    EXPECT_NE(pickle_complaint(bytes), "accepted") << bytes;
  }
}

TEST(PickleTest, BoundsTheNumberOfValues) {
  EXPECT_THROW(pickle_of(std::string(1001, 'N') + "."), base::Error);
}

}  // namespace
}  // namespace lockstep::weights
