// SPDX-License-Identifier: Apache-2.0
// Driven by segment.py, captions.py and text.py: each input line is a request, each output line its answer.
//   {"captions": [{"made": "a cat", "references": ["the cat", ...]}, ...]}: figures of captions
//   {"classes": 3, "labels": [[...], ...], "answers": [[...], ...]}: figures of pixels, an image a list
//   {"positive": 0, "targets": [...], "logits": [[...], ...]}: figures of sentences, by two scores that are merged
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/task/caption_metrics.h"
#include "lockstep/task/segment_score.h"
#include "lockstep/task/text_score.h"

namespace {

using namespace lockstep;
using base::Json;

Json pixel_figures(const Json& request) {
  task::PixelCounts counts(request.at("classes").as_int());
  const auto& labels = request.at("labels").items();
  const auto& answers = request.at("answers").items();
  for (size_t image = 0; image < labels.size(); ++image) {
    for (size_t i = 0; i < labels[image].size(); ++i) {
      const int64_t label = labels[image].items()[i].as_int();
      if (label != 255) counts.add(label, answers[image].items()[i].as_int());
    }
  }
  Json reply = Json::object(), iou = Json::array();
  for (int64_t label = 0; label < counts.labels(); ++label) {
    const auto one = counts.iou(label);
    iou.push_back(one ? Json(*one) : Json());
  }
  reply["pixel_accuracy"] = counts.accuracy();
  reply["miou"] = counts.mean_iou();
  reply["iou"] = std::move(iou);
  return reply;
}

Json caption_figures(const Json& request) {
  const auto words = [](const Json& sentence) {
    return sentence.as_string().empty() ? task::Words() : base::split(sentence.as_string(), ' ');
  };
  std::vector<task::CaptionPair> pairs;
  for (const Json& row : request.at("captions").items()) {
    task::CaptionPair pair{words(row.at("made")), {}};
    for (const Json& reference : row.at("references").items()) pair.references.push_back(words(reference));
    pairs.push_back(std::move(pair));
  }
  const task::CaptionFigures all = task::caption_figures(pairs);
  Json reply = Json::object();
  reply["figures"] = Json::array({all.bleu[0], all.bleu[1], all.bleu[2], all.bleu[3], all.rouge_l, all.cider});
  return reply;
}

Json sentence_figures(const Json& request) {
  const auto& targets = request.at("targets").items();
  const auto& logits = request.at("logits").items();
  const int64_t width = std::ssize(logits.front().items()), positive = request.at("positive").as_int();
  std::vector<std::string> classes;
  for (int64_t i = 0; i < width; ++i) classes.push_back(base::text("class", i));
  const auto first = task::make_text_score(classes, positive, 3), second = task::make_text_score(classes, positive, 3);
  for (size_t i = 0; i < targets.size(); ++i) {
    const std::vector<int64_t> id{static_cast<int64_t>(i)}, label{targets[i].as_int()};
    std::vector<float> row;
    for (const Json& value : logits[i].items()) row.push_back(static_cast<float>(value.as_double()));
    const auto bytes = std::as_bytes(std::span(label));
    const std::vector<task::FieldValues> fields{
        {{.name = "label", .element = task::Element::int64}, {bytes.begin(), bytes.end()}}};
    (i % 2 == 0 ? first : second)->add({id, fields, {{"logits", width, row}}});
  }
  first->merge(second->pack());
  return first->figures();
}

Json answer(const Json& request) {
  if (request.contains("logits")) return sentence_figures(request);
  return request.contains("captions") ? caption_figures(request) : pixel_figures(request);
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << answer(base::parse_json(line, "request")).dump(-1) << std::endl;
  }
  return 0;
}
