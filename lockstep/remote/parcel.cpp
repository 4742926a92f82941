// SPDX-License-Identifier: Apache-2.0
#include "lockstep/remote/parcel.h"

#include <algorithm>
#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::remote {
namespace {

using base::Blame;
using base::Error;
using base::text;

// As rsync --copy-links copies it: what a link leads to counts wherever a link leads to it. One that leads back to a
// folder on the way has no end; check_links() refuses it.
int64_t bytes_in(const base::Path& path, std::vector<base::Path>& way) {
  if (std::filesystem::is_regular_file(path)) return static_cast<int64_t>(std::filesystem::file_size(path));
  if (!std::filesystem::is_directory(path)) return 0;
  const base::Path real = std::filesystem::canonical(path);
  if (std::count(way.begin(), way.end(), real) > 0) return 0;
  way.push_back(real);
  int64_t sum = 0;
  for (const auto& entry : base::list_folder(path)) sum += bytes_in(entry, way);
  way.pop_back();
  return sum;
}

bool leads_out(const std::string& path) {
  const base::Path normal = base::Path(path).lexically_normal();
  return normal.begin() != normal.end() && *normal.begin() == "..";
}

bool lies_in(const base::Path& path, const base::Path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

// Goes where rsync --copy-links goes.
class LinkWalk {
 public:
  explicit LinkWalk(const std::vector<std::string>& parcel) {
    for (const auto& path : parcel) copied_.push_back(std::filesystem::canonical(path));
  }

  void look_at(const base::Path& folder) {
    way_.push_back(std::filesystem::canonical(folder));
    for (const auto& entry : base::list_folder(folder)) {
      if (std::filesystem::is_symlink(entry)) check(entry);
      if (std::filesystem::is_directory(entry)) look_at(entry);
    }
    way_.pop_back();
  }

 private:
  void check(const base::Path& link) const {
    std::error_code broken;
    const base::Path target = std::filesystem::canonical(link, broken);
    const auto refuse = [&](const std::string& what, const std::string& fix) {
      return Error(Blame::user, text(link.string(), " is a link to ", read_symlink(link).string(), what), fix);
    };
    if (broken) throw refuse(", which is not there", "remove the link, or put the file there");
    const auto holds = [&](const base::Path& folder) { return lies_in(target, folder); };
    if (std::none_of(copied_.begin(), copied_.end(), holds)) {
      throw refuse(", outside of what is copied",
                   "put the file itself there (cp -rL); or copy all of it to the login node and give its path there, "
                   "absolute");
    }
    if (std::any_of(way_.begin(), way_.end(), [&](const base::Path& folder) { return lies_in(folder, target); })) {
      throw refuse(", a folder that it lies in: there would be no end", "remove the link");
    }
  }

  std::vector<base::Path> copied_;
  std::vector<base::Path> way_;  // to the folder that is looked at
};

}  // namespace

void check_links(const std::vector<std::string>& parcel) {
  LinkWalk walk(parcel);
  for (const auto& path : parcel) {
    if (std::filesystem::is_directory(path)) walk.look_at(path);
  }
}

std::string parcel_words(const std::string& path) {
  const base::Path plain = (std::filesystem::canonical(".") / path / "").lexically_normal();
  const base::Path real = std::filesystem::canonical(path);
  return real / "" == plain ? path : text(path, " (", real.string(), ")");
}

std::vector<JobFile> files_of(const spec::Job& job) {
  std::vector<JobFile> all;
  const auto add = [&](const char* key, const std::string& path) {
    if (path.empty() || path == "synthetic") return;
    for (const auto& one : all) {
      if (one.path == path) return;
    }
    JobFile file{key, path, base::is_there(path), 0};
    std::vector<base::Path> way;
    if (file.here) file.bytes = bytes_in(path, way);
    all.push_back(std::move(file));
  };
  add("data.train", job.data.train);
  add("data.validate", job.data.validate);
  add("data.test", job.data.test);
  add("model.weights", job.model.weights);
  add("instances.context", job.instances.context);
  return all;
}

std::vector<std::string> choose_parcel(const std::vector<JobFile>& files, const std::vector<std::string>& there,
                                       int64_t most, const std::string& destination) {
  std::vector<std::string> parcel;
  int64_t bytes = 0;
  for (const auto& file : files) {
    const bool is_there = std::count(there.begin(), there.end(), file.path) > 0;
    const bool absolute = base::Path(file.path).is_absolute();
    if (absolute && is_there) continue;
    if (absolute) {
      throw Error(Blame::user, text(file.key, ": ", file.path, " is not on ", destination),
                  "an absolute path is meant as it is there; a relative one is copied");
    }
    if (leads_out(file.path)) {
      throw Error(Blame::user, text(file.key, ": ", file.path, " lies outside this folder, which is what is copied"),
                  "submit from a folder that holds it, or give the path there, absolute");
    }
    if (!file.here && is_there) continue;
    if (!file.here) {
      throw Error(Blame::user, text(file.key, ": ", file.path, " is neither here nor on ", destination),
                  text("correct the path, or copy it there first"));
    }
    if (!is_there) bytes += file.bytes;
    parcel.push_back(base::Path(file.path).lexically_normal().string());
  }
  if (bytes > most) {
    throw Error(Blame::user,
                text("the job's files are ", base::format_bytes(static_cast<double>(bytes)), ", more than the ",
                     base::format_bytes(static_cast<double>(most)), " that are copied without asking"),
                "--most 200GB copies them all the same; or copy them once and give their path there, absolute");
  }
  return parcel;
}

}  // namespace lockstep::remote
