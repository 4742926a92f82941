// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_pets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/decode.h"

namespace lockstep::sources {
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

TEST_F(PetSourceTest, NamesBreedsByTheirImages) {
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

TEST_F(PetSourceTest, TurnsATrimapWithItsImage) {
  using std::string_literals::operator""s;
  const std::string exif = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0"s;
  const std::string upright = image::encode_jpeg(image::Image(30, 20), 90);
  std::string turned = upright;
  turned.insert(2, "\xFF\xE1\0"s + static_cast<char>(exif.size() + 2) + exif);
  image::Image trimap(30, 20);
  std::fill(trimap.pixels.begin(), trimap.pixels.end(), uint8_t{2});
  std::fill_n(trimap.row(3), 3, uint8_t{1});  // x 0, y 3: turned by a quarter it is the 17th column's first
  const std::string file = image::encode_png(trimap);
  for (const char* name : {"a_1", "a_2", "a_3"}) put("images/" + std::string(name) + ".jpg", turned);
  put("images/a_2.jpg", upright);
  put("annotations/trimaps/a_1.png", file);
  put("annotations/trimaps/a_2.png", file);
  put("annotations/trimaps/a_3.png", image::encode_png(image::Image(31, 20)));
  put("annotations/trainval.txt", "a_1 1 1 1\na_2 1 1 1\na_3 1 1 1\n");
  const auto source = open_pets({.path = folder_.path(), .masks = true});
  const std::string seen = source->load(0)[1].bytes;
  EXPECT_EQ(image::decode_image(std::as_bytes(std::span(seen.data(), seen.size()))), image::orient(trimap, 6));
  EXPECT_EQ(image::orient(trimap, 6).row(0)[3 * 16], 1);
  EXPECT_EQ(source->load(1)[1].bytes, file) << "byte for byte";
  EXPECT_THROW(source->load(2), base::Error) << "a trimap of another image";
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
  put("annotations/trainval.txt", "a_1 0 1 1\n");
  EXPECT_THROW(open(), base::Error);
}

TEST_F(PetSourceTest, TakesAListOfSomeBreeds) {
  for (const char* name : {"pug_1", "Bengal_1", "pug_2"}) put("images/" + std::string(name) + ".jpg");
  put("annotations/trainval.txt", "Bengal_1 6 1 1\npug_1 26 2 1\npug_2 26 2 1\n");
  const auto source = open();
  EXPECT_THAT(source->classes(), ElementsAre("Bengal", "pug"));
  std::vector<int32_t> labels;
  for (const auto& sample : source->samples()) labels.push_back(sample.label);
  EXPECT_THAT(labels, ElementsAre(0, 1, 1));
}

}  // namespace
}  // namespace lockstep::sources
