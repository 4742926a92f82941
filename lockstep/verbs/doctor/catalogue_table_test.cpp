// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/doctor/catalogue_table.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::verbs::doctor {
namespace {

TEST(CatalogueTableTest, ListsOneKindOrAll) {
  const auto catalogue = catalogue::load_embedded();
  EXPECT_NE(catalogue_text(catalogue, "gpus").find("a100-80"), std::string::npos);
  EXPECT_EQ(catalogue_text(catalogue, "gpus").find("minotauro"), std::string::npos);
  for (const char* word : {"a100-80", "epyc-7742", "minotauro", "h100-lambda", "psu-1200"}) {
    EXPECT_NE(catalogue_text(catalogue, "all").find(word), std::string::npos) << word;
  }
}

TEST(CatalogueTableTest, GivesJsonThatLoadsAgain) {
  const auto catalogue = catalogue::load_embedded();
  catalogue::Catalogue again;
  again.add(catalogue_json(catalogue, "all"));
  EXPECT_EQ(again.gpus, catalogue.gpus);
  EXPECT_EQ(again.machines, catalogue.machines);
  EXPECT_EQ(again.parts, catalogue.parts);
}

TEST(CatalogueTableTest, NamesTheKindsThatExist) {
  try {
    catalogue_text(catalogue::load_embedded(), "gpu");
    FAIL() << "not refused";
  } catch (const base::Error& error) {
    EXPECT_EQ(std::string(error.what()), "the catalogue has no 'gpu'");
    EXPECT_NE(error.fix().find("'gpus'"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::verbs::doctor
