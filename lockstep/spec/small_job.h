// SPDX-License-Identifier: Apache-2.0
// For tests: small documents, and what is said of wrong ones.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {

inline constexpr const char* kSmallJob = R"({
  "name": "pets",
  "data": {"train": "data/train"},
  "model": {"name": "resnet18"},
  "training": {"epochs": 4}
})";

inline Job job_of(const std::string& content, const std::vector<std::string>& sets = {}) {
  return parse_job(base::parse_json(content, "job.json"), sets);
}

// The message of the user error that the document deserves.
inline std::string job_complaint(const std::string& content, const std::vector<std::string>& sets = {}) {
  try {
    job_of(content, sets);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    EXPECT_FALSE(error.fix().empty()) << error.what();
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << content;
  return "";
}

// A document whose `training` section is the given text.
inline std::string with_training(const std::string& training) {
  return base::text(
      "{\"name\": \"pets\", \"data\": {\"train\": \"data/train\"}, \"model\": {\"name\": \"resnet18\"},\n",
      " \"training\": {", training, "}}");
}

}  // namespace lockstep::spec
