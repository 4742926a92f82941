// SPDX-License-Identifier: Apache-2.0
#include "lockstep/results/page.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/error.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/results/record.h"
#include "lockstep/web/page.h"

namespace lockstep::results {
namespace {

using base::Json;
using base::text;

// From the page to the image; empty where that is its path itself.
std::string link_to(const std::string& path, const base::Path& page) {
  std::error_code unknown;
  const base::Path folder = std::filesystem::absolute(page, unknown).parent_path();
  const std::string link =
      std::filesystem::absolute(path, unknown).lexically_normal().lexically_relative(folder).string();
  return unknown || link == path ? "" : link;
}

// What a task without classes says, for people: "age 31.5".
std::string numbers_of(const Json& record) {
  std::string words;
  if (record.contains("objects") || record.contains("classes")) return words;
  for (const auto& member : record.members()) {
    if (member.key == "bytes" || !member.value.is_number()) continue;
    words += text(words.empty() ? "" : ", ", member.key, " ", base::fixed(member.value.as_double(), 3));
  }
  return words;
}

}  // namespace

ContactPage::ContactPage(ResultPaths paths, const Terms& terms, std::string root)
    : paths_(std::move(paths)), model_(terms.model()), root_(std::move(root)) {
  for (const auto& name : terms.classes) number_of(name);
}

int64_t ContactPage::number_of(const std::string& name) {
  const auto [found, is_new] = numbers_.emplace(name, static_cast<int64_t>(classes_.size()));
  if (is_new) classes_.push_back(name);
  return found->second;
}

// "class score x y w h;...": a string, since as many values of their own would take ten times the memory.
std::string ContactPage::answers_of(const Json& record) {
  const bool objects = record.contains("objects");
  const Json* list = record.find(objects ? "objects" : "classes");
  if (!list) return "";
  std::vector<std::pair<double, const Json*>> answers;
  for (const auto& answer : list->items()) {
    answers.emplace_back(answer.at(objects ? "score" : "probability").as_double(), &answer);
  }
  std::stable_sort(answers.begin(), answers.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  if (answers.size() > kMostAnswers) answers.resize(kMostAnswers);
  std::string words;
  for (const auto& [score, answer] : answers) {
    words += text(words.empty() ? "" : ";", number_of(answer->at(objects ? "class" : "name").as_string()), " ",
                  base::fixed(score, 3));
    if (!objects) continue;
    for (const auto& number : answer->at("box").items()) words += text(" ", std::lround(number.as_double()));
  }
  return words;
}

void ContactPage::add(std::string_view line) {
  ++images_;
  const auto head = read_head(line);
  base::ensure(head.has_value(), "a record for the page");
  if (head->failed) ++failed_;
  if (images_ > kMostShown) return;
  const Json record = base::parse_json(line, "record", {.max_bytes = line.size() + 1});
  Json row = Json::array();
  row.push_back(head->path);
  row.push_back(link_to(head->path, paths_.page()));
  row.push_back(head->failed ? "" : thumbnail_name(head->sha256));
  row.push_back(head->failed ? "" : picture_name(head->path, root_));
  row.push_back(record.int_or("width", 0));
  row.push_back(record.int_or("height", 0));
  row.push_back(answers_of(record));
  row.push_back(head->failed ? record.at("error").as_string() : numbers_of(record));
  row.push_back(head->failed);
  rows_.push_back(std::move(row));
}

void ContactPage::write() const {
  Json data = Json::object();
  data["name"] = paths_.to.filename().string();
  data["model"] = model_;
  data["images"] = images_;
  data["failed"] = failed_;
  data["files"] = paths_.files().filename().string();
  data["classes"] = Json::array_of(classes_);
  data["rows"] = rows_;
  DraftedFile file(paths_.page());  // a draft that a kill leaves behind is the next session's
  file.write(web::render_page("predict", paths_.to.filename().string(), data));
  file.commit();
}

}  // namespace lockstep::results
