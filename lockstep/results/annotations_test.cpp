// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/annotations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/results/record.h"

namespace lockstep::results {
namespace {

base::Json record_of(const std::string& record) {
  return base::parse_json(
      record_line({"set/a b.jpg", "abc", {3, "x"}, "m@1", "2026-11-17T19:20:32Z"}, base::parse_json(record, "record")),
      "record");
}

TEST(AnnotationsTest, AnObjectIsTaggedInWholePixels) {
  const auto all = annotate(record_of(R"({"width": 20, "height": 10, "objects": [
      {"class": "dog", "label": 0, "score": 0.9, "box": [-1.5, 2.4, 9.2, 99]},
      {"class": "cat", "label": 1, "score": 0.2, "box": [0, 0, 1, 1]}]})"),
                            {.to = {}, .source = "https://example.org/"});
  ASSERT_EQ(all.size(), 1U);
  const base::Json& annotation = all[0];
  EXPECT_EQ(annotation.at("type").as_string(), "Annotation");
  EXPECT_EQ(annotation.at("motivation").as_string(), "tagging");
  EXPECT_EQ(annotation.at("body").dump(-1), R"({"type":"TextualBody","value":"dog","purpose":"tagging"})");
  EXPECT_EQ(annotation.at("target").at("source").as_string(), "https://example.org/set/a%20b.jpg");
  EXPECT_EQ(annotation.at("target").at("selector").dump(-1),
            R"({"type":"FragmentSelector","conformsTo":"http://www.w3.org/TR/media-frags/",)"
            R"("value":"xywh=pixel:0,2,8,8"})");
  EXPECT_EQ(annotation.at("created").as_string(), "2026-11-17T19:20:32Z");
  EXPECT_EQ(annotation.at("confidence").as_double(), 0.9);
  EXPECT_THAT(annotation.at("id").as_string(), testing::MatchesRegex("urn:uuid:........-....-8...-a...-............"));
}

TEST(AnnotationsTest, AMaskIsAnOutline) {
  const auto all = annotate(record_of(R"({"width": 4, "height": 4, "objects": [{"class": "dog", "label": 0, "score": 1,
      "box": [1, 1, 2, 2], "segmentation": {"size": [4, 4], "counts": [5, 2, 2, 2, 5]}}]})"),
                            {});
  const base::Json& selectors = all.at(0).at("target").at("selector");
  ASSERT_EQ(selectors.size(), 2U);
  EXPECT_EQ(selectors.items()[1].at("type").as_string(), "SvgSelector");
  EXPECT_EQ(selectors.items()[1].at("value").as_string(),
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 4 4\"><path fill-rule=\"evenodd\" "
            "d=\"M1 1L3 1L3 3L1 3Z\"/></svg>");
}

TEST(AnnotationsTest, AClassTagsTheWholeImageAndMayBeAConcept) {
  const auto record =
      record_of(R"({"classes": [{"name": "cat", "probability": 0.8}, {"name": "dog", "probability": 0.2}]})");
  const auto all = annotate(record, {.to = {}, .least = 0.1, .concepts = {{"cat", "http://example.org/cat"}}});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].at("target").as_string(), "set/a%20b.jpg");
  EXPECT_EQ(all[0].at("body").dump(-1),
            R"({"type":"SpecificResource","source":"http://example.org/cat","purpose":"tagging"})");
  EXPECT_NE(all[0].at("id"), all[1].at("id"));
  EXPECT_EQ(all[0].at("id"), annotate(record, {}).at(0).at("id"));
}

TEST(AnnotationsTest, APageHasThemAll) {
  const base::TemporaryFolder folder;
  const base::Path results = folder.path() / "results.jsonl", to = folder.path() / "annotations.json";
  base::write_file(results, record_of(R"({"classes": [{"name": "cat", "probability": 0.8}]})").dump(-1) + "\n" +
                                failed_line({"bad.jpg", "", {}, "m", "t"}, "no image") + "\n");
  const AnnotationSummary summary = write_annotations(results, {.to = to});
  EXPECT_EQ(summary.annotations, 1);
  EXPECT_EQ(summary.failed, 1);
  const base::Json page = base::read_json(to);
  EXPECT_EQ(page.at("@context").items()[0].as_string(), "http://www.w3.org/ns/anno.jsonld");
  EXPECT_EQ(page.at("type").as_string(), "AnnotationPage");
  EXPECT_EQ(page.at("items").size(), 1U);
  base::write_file(folder.path() / "concepts.csv", "class,iri\ncat,http://example.org/cat\n");
  EXPECT_EQ(read_concepts(folder.path() / "concepts.csv").at("cat"), "http://example.org/cat");
}

}  // namespace
}  // namespace lockstep::results
