// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/results/terms.h"

namespace lockstep::results {

// The contact-sheet page of a results file: thumbnails with what was found in them, filters by class and confidence.
// It holds the first kMostShown images, a few hundred bytes each, and loads thumbnails and pictures as they are looked
// at, from ResultPaths::files().
class ContactPage {
 public:
  static constexpr int64_t kMostShown = 50000;
  static constexpr size_t kMostAnswers = 20;  // of an image, the surest

  // `root`: of the collection, as picture_name() takes it.
  ContactPage(ResultPaths paths, const Terms& terms, std::string root);

  void add(std::string_view record);  // a line of the results file, in their order
  void write() const;                 // ResultPaths::page()

 private:
  std::string answers_of(const base::Json& record);
  int64_t number_of(const std::string& name);

  ResultPaths paths_;
  std::string model_;
  std::string root_;
  std::vector<std::string> classes_;
  std::map<std::string, int64_t> numbers_;  // of classes
  base::Json rows_ = base::Json::array();
  int64_t images_ = 0;
  int64_t failed_ = 0;
};

}  // namespace lockstep::results
