// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_affectnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/sources/npy.h"

namespace lockstep::sources {
namespace {

using testing::ElementsAre;

class AffectNetSourceTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content) {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  // As numpy.save writes a string: four bytes a letter.
  static std::string as_text(const std::string& letters) {
    std::string bytes;
    for (const char letter : letters) bytes += std::string{letter, '\0', '\0', '\0'};
    return sources::npy_file("U" + std::to_string(letters.size()), std::vector<int64_t>{}, bytes);
  }
  base::TemporaryFolder folder_;
};

TEST_F(AffectNetSourceTest, TakesEmotionsFromTheArraysBesideTheImages) {
  put("train_set/images/7.jpg", "seven");
  put("train_set/annotations/7_exp.npy", as_text("6"));
  put("train_set/annotations/7_val.npy", as_text("-0.25"));
  const double arousal = 0.5;
  put("train_set/annotations/7_aro.npy",
      sources::npy_file("f8", std::vector<int64_t>{},
                        std::string_view(reinterpret_cast<const char*>(&arousal), sizeof arousal)));
  put("train_set/annotations/7_lnd.npy", "landmarks");
  put("train_set/images/8.jpg", "eight");
  put("val_set/images/1.jpg", "one");
  put("val_set/annotations/1_exp.npy", as_text("0"));
  put("val_set/images/3.jpg", "three");
  put("val_set/annotations/3_exp.npy", as_text("1e300"));
  put("val_set/images/2.jpg", "two");
  put("val_set/annotations/2_exp.npy", as_text("9"));
  const SourceOptions options{.path = folder_.path()};
  ASSERT_TRUE(looks_like_affectnet(options));
  const auto source = open_affectnet(options);
  EXPECT_EQ(source->classes().size(), 8u);
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"train_set/images/7.jpg", 6, Part::train, 5},
                                             SourceSample{"val_set/images/1.jpg", 0, Part::validate, 3}));
  EXPECT_THAT(source->load(0),
              ElementsAre(SourceMember{"", "seven"}, SourceMember{"json", R"({"valence":-0.25,"arousal":0.5})"},
                          SourceMember{"lnd.npy", "landmarks"}));
  EXPECT_THAT(source->load(1), ElementsAre(SourceMember{"", "one"}));
  ASSERT_EQ(source->refused().size(), 3u);
  EXPECT_EQ(source->refused()[2].reason, "emotion 1e+300 is none of the classes");
  EXPECT_EQ(source->refused()[0].name, "train_set/images/8.jpg");
  EXPECT_EQ(source->refused()[1].reason, "emotion 9 is none of the classes");
}

}  // namespace
}  // namespace lockstep::sources
