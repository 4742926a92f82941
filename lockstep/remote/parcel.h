// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/spec/job.h"

namespace lockstep::remote {

// A file or a folder that a job names: it must be there where the job runs.
struct JobFile {
  std::string key;   // of the job: "data.train"
  std::string path;  // as it stands in the job
  bool here = false;
  int64_t bytes = 0;  // of all that is in it, where it is here

  bool operator==(const JobFile&) const = default;
};
std::vector<JobFile> files_of(const spec::Job& job);

// What of these is copied, by path, when those in `there` exist there already (they are brought up to date). User error
// that names what cannot be: it is neither here nor there; an absolute path that is not there; one outside this folder;
// together more than `most` bytes of which nothing is there: what is there counts as whole, also after a copy that was
// interrupted.
std::vector<std::string> choose_parcel(const std::vector<JobFile>& files, const std::vector<std::string>& there,
                                       int64_t most, const std::string& destination);

// REQUIRES: these paths are here. Links in them are copied as what they lead to: user error that names one which leads
// out of all of them, nowhere, or round in a circle. What the job names itself may be a link.
void check_links(const std::vector<std::string>& parcel);

// For people: the path, and where it leads when it is a link.
std::string parcel_words(const std::string& path);

}  // namespace lockstep::remote
