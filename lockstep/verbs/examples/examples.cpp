// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/examples/examples.h"

#include <filesystem>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"

namespace lockstep::verbs::examples {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

constexpr std::string_view kExamples = "examples/";
constexpr std::string_view kNotebooks = "notebooks/";

bool is_same(const Path& path, std::string_view content) {
  return std::filesystem::is_regular_file(path) && std::filesystem::file_size(path) == content.size() &&
         base::read_file(path) == content;
}

}  // namespace

Path target_of(std::string_view embedded_name) {
  if (embedded_name.starts_with(kExamples)) return embedded_name.substr(kExamples.size());
  if (embedded_name.starts_with(kNotebooks)) return embedded_name;
  return {};
}

Copied copy_examples(const std::vector<base::Embedded>& files, const Path& folder) {
  Copied copied;
  std::vector<const base::Embedded*> to_write;
  for (const auto& file : files) {
    const Path target = target_of(file.name);
    if (target.empty()) continue;
    const Path path = folder / target;
    if (!base::is_there(path)) {
      to_write.push_back(&file);
    } else if (is_same(path, file.content)) {
      copied.unchanged.push_back(path);
    } else {
      throw Error(Blame::user, text(path.string(), " is there and differs from the example of that name"),
                  "give another folder; nothing was written");
    }
  }
  for (const base::Embedded* file : to_write) {
    const Path path = folder / target_of(file->name);
    base::make_folders(path.parent_path());
    base::write_file(path, file->content);
    if (file->content.starts_with("#!")) {
      using std::filesystem::perms;
      std::filesystem::permissions(path, perms::owner_exec | perms::group_exec | perms::others_exec,
                                   std::filesystem::perm_options::add);
    }
    copied.written.push_back(path);
  }
  return copied;
}

}  // namespace lockstep::verbs::examples
