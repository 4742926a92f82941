// SPDX-License-Identifier: Apache-2.0
#include "lockstep/data/source_pets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

using testing::ElementsAre;

class PetSourceTest : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& content = "x") {
    base::make_folders((folder_.path() / name).parent_path());
    base::FileWriter(folder_.path() / name, base::FileWriter::Mode::truncate).write(content);
  }
  std::unique_ptr<Source> open() const {
    EXPECT_TRUE(looks_like_pets({.path = folder_.path()}));
    return open_pets({.path = folder_.path()});
  }
  base::TemporaryFolder folder_;
};

TEST_F(PetSourceTest, NamesBreedsByTheirPictures) {
  put("images/Abyssinian_10.jpg");
  put("images/great_pyrenees_1.jpg", "dog");
  put("annotations/trainval.txt",
      "# Image CLASS-ID SPECIES BREED\nAbyssinian_10 1 1 1\ngreat_pyrenees_1 2 2 1\nAbyssinian_11 1 1 1\n");
  const auto source = open();
  EXPECT_THAT(source->classes(), ElementsAre("Abyssinian", "great_pyrenees"));
  EXPECT_THAT(source->samples(), ElementsAre(SourceSample{"images/Abyssinian_10.jpg", 0, Part::open, 1},
                                             SourceSample{"images/great_pyrenees_1.jpg", 1, Part::open, 3}));
  EXPECT_EQ(source->load(1)[0].bytes, "dog");
  EXPECT_EQ(source->refused().size(), 1u);
}

TEST_F(PetSourceTest, HasPartsWithBothLists) {
  put("images/a_1.jpg");
  put("images/a_2.jpg");
  put("annotations/trainval.txt", "a_1 1 1 1\n");
  put("annotations/test.txt", "a_2 1 1 1\n");
  EXPECT_EQ(open()->samples()[0].part, Part::train);
  EXPECT_EQ(open()->samples()[1].part, Part::test);
}

TEST_F(PetSourceTest, RefusesListsThatContradictThemselves) {
  put("images/a_1.jpg");
  put("annotations/trainval.txt", "a_1 1 1 1\nb_1 1 1 1\n");
  EXPECT_THROW(open(), base::Error);
  put("annotations/trainval.txt", "a_1 one 1 1\n");
  EXPECT_THROW(open(), base::Error);
  put("annotations/trainval.txt", "a_1 2 1 1\n");
  EXPECT_THROW(open(), base::Error);
}

}  // namespace
}  // namespace lockstep::data
