// SPDX-License-Identifier: Apache-2.0
// What a page has in place of the machine around a program: no probe, no folders of samples. Where a plan asks for
// them, a page answers before (no path is a folder there), but for `--on here`.
#include "lockstep/base/error.h"
#include "lockstep/loader/stage.h"
#include "lockstep/loader/store.h"
#include "lockstep/site/probe.h"
#include "lockstep/sources/file_tree.h"
#include "lockstep/sources/source_folder.h"

namespace lockstep {
namespace {

[[noreturn]] void refuse_samples() {
  throw base::Error(base::Blame::user, "a page reads no samples", "say how many there are: data.samples");
}

}  // namespace

site::Probe site::probe_site() {
  throw base::Error(base::Blame::user, "--on here, cpu: a page does not see the machine that shows it",
                    "lockstep doctor --save machine.json writes that down; drop the file onto the page");
}

std::unique_ptr<loader::Store> loader::open_store(const Collection& /*collection*/,
                                                  std::vector<std::string> /*members*/) {
  refuse_samples();
}

int64_t loader::shard_bytes(const Collection& /*collection*/) {
  refuse_samples();
}

const dirent* sources::next_entry(DIR* /*entries*/, const base::Path& /*folder*/) {
  refuse_samples();
}

std::string sources::extension_of(std::string_view /*name*/) {
  refuse_samples();
}

bool sources::has_image_name(std::string_view /*name*/) {
  refuse_samples();
}

void sources::refuse_part_in_class(const base::Path& /*root*/, const std::string& /*name*/, size_t /*class_begin*/) {
  refuse_samples();
}

}  // namespace lockstep
