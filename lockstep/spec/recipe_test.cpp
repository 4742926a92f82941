// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/spec/job.h"

namespace lockstep::spec {
namespace {

using base::Json;
using testing::HasSubstr;

Json document(const std::string& training, const std::string& model = R"("weights": "w.safetensors")") {
  return base::parse_json(R"({"name": "x", "data": {"train": "t"}, "model": {"name": "resnet50", )" + model + "}" +
                              (training.empty() ? "" : R"(, "training": {)" + training + "}") + "}",
                          "job.json");
}

TEST(RecipeTest, WeightsWithoutAWordAboutTrainingGetTheRecipe) {
  Json job = document("");
  EXPECT_THAT(add_recipe(job), HasSubstr("recipe: the head for 20 epochs on cached features"));
  const Job parsed = parse_job(job);
  EXPECT_EQ(parsed.training.optimizer.name, OptimizerName::adamw);
  EXPECT_LE(parsed.training.optimizer.lr, 1e-3);
  ASSERT_EQ(parsed.training.phases.size(), 2U);
  EXPECT_EQ(parsed.training.phases[0].train_from, "head");
  EXPECT_TRUE(parsed.training.phases[0].cache_features);
  EXPECT_TRUE(parsed.training.phases[0].cache_flips);
  EXPECT_EQ(parsed.training.phases[1].train_from, "");
  EXPECT_LT(parsed.training.phases[1].lr_scale, 1);
  EXPECT_TRUE(parsed.training.phases[1].freeze_norm);
  EXPECT_EQ(parsed.evaluation.views, Views::flip);
  Json resolved = to_json(parsed);  // as it stands in a run's folder: nothing is added to it
  EXPECT_EQ(add_recipe(resolved), "");
  EXPECT_EQ(parse_job(resolved), parsed);
}

TEST(RecipeTest, AJobThatStatesARecipeIsLeftAlone) {
  for (const char* own : {R"("epochs": 3, "optimizer": {"lr": 0.1})", R"("epochs": 3, "schedule": {})", R"("steps": 3)",
                          R"("phases": [{"epochs": 2}])", R"("optimizer": {"name": "sgd", "lr": 0.1})"}) {
    Json job = document(own);
    EXPECT_EQ(add_recipe(job), "") << own;
    EXPECT_EQ(job, document(own));
  }
  Json fresh = document(R"("epochs": 3)", R"("weights": "")");
  EXPECT_EQ(add_recipe(fresh), "");
  EXPECT_EQ(parse_job(fresh).training.optimizer.name, OptimizerName::sgd);
}

TEST(RecipeTest, KeepsWhatTheJobSaysBesides) {
  Json job = document(R"("epochs": 5, "label_smoothing": 0, "virtual_ranks": 4)");
  job["data"]["flip"] = false;
  EXPECT_THAT(add_recipe(job), HasSubstr("the whole network for 5"));
  const Job parsed = parse_job(job);
  EXPECT_EQ(parsed.training.epochs, 0);
  EXPECT_EQ(parsed.training.phases.at(1).epochs, 5);
  EXPECT_EQ(parsed.training.label_smoothing, 0);
  EXPECT_FALSE(parsed.training.phases[0].cache_features);
  EXPECT_EQ(parsed.evaluation.views, Views::center);
}

TEST(RecipeTest, EveryTaskFromWeightsNeedsNoMoreThanALength) {
  for (const auto& [task, network, more] : {std::tuple("classify", "resnet18", ""),
                                            {"ordinal", "resnet18", R"("classes": 3)"},
                                            {"multilabel", "resnet18", R"("classes": 3)"},
                                            {"regress", "resnet18", ""},
                                            {"detect", "fastbox_vgg16", ""},
                                            {"instances", "maskrcnn_resnet18_fpn", ""},
                                            {"segment", "fcdensenet56", ""},
                                            {"nowcast", "convlstm", ""},
                                            {"caption", "attend_resnet18", ""},
                                            {"text", "hashed_linear", ""}}) {
    Json job = document(R"("epochs": 2)");
    job["task"] = task;
    job["model"]["name"] = network;
    if (*more) job["model"]["classes"] = 3;
    EXPECT_THAT(add_recipe(job), HasSubstr("recipe: ")) << task;
    const Job parsed = parse_job(job);
    EXPECT_EQ(parsed.training.optimizer.name, OptimizerName::adamw) << task;
    EXPECT_EQ(parsed.training.optimizer.lr, std::string_view(network) == "resnet18" ? 1e-3 : 1e-4) << task;
  }
}

TEST(RecipeTest, ALearningRateAloneIsThatOfTheRecipe) {
  Json job = document(R"("optimizer": {"lr": 0.002})");
  EXPECT_THAT(add_recipe(job), HasSubstr("adamw at 0.002, then 6e-05"));
  const Job parsed = parse_job(document(""), {"training.optimizer.lr=0.002"});
  EXPECT_EQ(parsed, parse_job(job));
  EXPECT_EQ(parsed.training.optimizer.lr, 0.002);
  EXPECT_EQ(parsed.training.optimizer.name, OptimizerName::adamw);
  EXPECT_EQ(parsed.training.phases.size(), 2U);
}

TEST(RecipeTest, NetworksThatAverageOverTheImageTakeAnySize) {
  Json job = document("");
  EXPECT_TRUE(takes_any_size(job));
  job["model"]["name"] = "vit_base_patch16_224";
  EXPECT_FALSE(takes_any_size(job));
}

}  // namespace
}  // namespace lockstep::spec
