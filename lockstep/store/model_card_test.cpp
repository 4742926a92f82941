// SPDX-License-Identifier: Apache-2.0
#include "lockstep/store/model_card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/spec/small_job.h"

namespace lockstep::store {
namespace {

using testing::HasSubstr;
using testing::Not;

base::Json about_with(const std::string& members) {
  return base::parse_json(R"({"weights": {"which": "best, step 1", "elements": 1500000}, "classes": ["cat", "<b>|dog"],
    "metrics": null, "data": {"train": "pets"}, "made_by": {}, "training": {}, "starts_from": null, "licence": null)" +
                              members + "}",
                          "about");
}

TEST(ModelCardTest, SaysWhatIsNotKnown) {
  const std::string card = model_card(about_with(""), spec::job_of(spec::kSmallJob));
  EXPECT_THAT(card, HasSubstr("# pets\n\nresnet18, 1.5M numbers: one of several classes"));
  EXPECT_THAT(card, HasSubstr("Not measured"));
  EXPECT_THAT(card, HasSubstr("Of these weights: not stated."));
  EXPECT_THAT(card, HasSubstr("fresh weights"));
}

TEST(ModelCardTest, NamesAreNeitherMarkdownNorHtml) {
  const std::string card = model_card(about_with(""), spec::job_of(spec::kSmallJob));
  EXPECT_THAT(card, HasSubstr(R"(cat, &lt;b\>\|dog)"));
  EXPECT_THAT(card, Not(HasSubstr("<b>")));
}

TEST(ModelCardTest, HasTheMetricsAndTheLicenceOfWhatItBeganWith) {
  base::Json about = about_with("");
  about["metrics"] = base::parse_json(
      R"({"samples": 40, "split": "validate", "top1": 0.925, "headline": {"text": "top-1 92.50 %"}})", "metrics");
  about["starts_from"] = base::parse_json(R"({"file": "resnet18.safetensors", "licence": "BSD-3"})", "from");
  const std::string card = model_card(about, spec::job_of(spec::kSmallJob));
  EXPECT_THAT(card, HasSubstr("**top-1 92.50 %** on 40 images of the validate data."));
  EXPECT_THAT(card, HasSubstr("| top1 | 0.925 |"));
  EXPECT_THAT(card, HasSubstr("Training began with resnet18.safetensors, licence: BSD-3."));
}

TEST(ModelCardTest, SaysWhatEveryTaskGivesAndTakes) {
  const auto card_of = [](const std::vector<std::string>& sets) {
    return model_card(about_with(""), spec::job_of(spec::kSmallJob, sets));
  };
  const std::string images = card_of({});
  EXPECT_THAT(images, HasSubstr("## How to use it\nImages of 224 pixels (the middle 0.875 of the short side), "));
  EXPECT_THAT(images, HasSubstr("does all of it:\n\n    lockstep predict STORE/NAME:TAG IMAGES\n\n## How good"));
  const std::string sentences = card_of({"task=text", "model.name=hashed_linear"});
  EXPECT_THAT(sentences, HasSubstr("numbers: the class of a sentence: softmax of the outputs.\n"));
  EXPECT_THAT(sentences,
              HasSubstr("## How to use it\nSentences in UTF-8, by their hashed n-grams. `lockstep predict`"));
  const std::string radar = card_of({"task=nowcast", "model.name=convlstm", "data.image_size=64"});
  EXPECT_THAT(radar, HasSubstr("Strips of 5 radar frames, 5 minutes apart, of 64"));
  for (const auto& card : {sentences, radar}) EXPECT_THAT(card, Not(HasSubstr("normalised with mean")));
}

}  // namespace
}  // namespace lockstep::store
