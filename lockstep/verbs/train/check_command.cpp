// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/train/check_command.h"

#include <algorithm>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/loader/data_check.h"
#include "lockstep/loader/data_lines.h"
#include "lockstep/site/cores.h"

namespace lockstep::verbs::train {
namespace {

using base::format_count;
using base::Json;
using base::text;

constexpr size_t kListed = 10;

std::string line_of(const loader::BadSample& bad) {
  const bool repeats = bad.reason.starts_with(bad.path + ": ");
  return text(loader::on_one_line(bad.path), ": ", repeats ? bad.reason.substr(bad.path.size() + 2) : bad.reason);
}

std::vector<loader::BadSample> find_bad(const loader::Collections& all, const task::Task& task, int64_t threads) {
  base::Progress progress(base::progress_for_stderr());
  std::vector<loader::BadSample> bad;
  const auto look_at = [&](const loader::Collection& collection, const char* part) {
    const int64_t count = std::ssize(collection.samples);
    const auto found = loader::find_bad_samples(collection, task, threads, [&](int64_t done) {
      progress.show(text("checking ", part, ": ", format_count(done), " of ", format_count(count)));
    });
    bad.insert(bad.end(), found.begin(), found.end());
  };
  look_at(all.train, "training");
  if (all.validate) look_at(*all.validate, "validation");
  return bad;
}

std::string some_lines(const std::vector<loader::BadSample>& bad, const char* what) {
  std::string out = text(format_count(std::ssize(bad)), bad.size() == 1 ? " sample" : " samples", what, ":\n");
  for (size_t i = 0; i < bad.size() && i < kListed; ++i) out += text("  ", line_of(bad[i]), "\n");
  if (bad.size() > kListed)
    out += text("  ... and ", format_count(static_cast<int64_t>(bad.size() - kListed)), " more\n");
  return out;
}

std::string bad_text(const std::vector<loader::BadSample>& bad, const std::vector<loader::BadSample>& partly,
                     const base::Path& list) {
  std::string out = bad.empty() ? "every one can be used\n" : some_lines(bad, " cannot be used");
  if (!partly.empty()) out += some_lines(partly, " can be used without these objects");
  if (!bad.empty() || !partly.empty()) out += text("all of them: ", list.string(), "\n");
  if (!bad.empty()) out += "fix: replace or remove them, or train without them: --set data.on_bad_sample=skip\n";
  return out;
}

}  // namespace

int check_data(const spec::Job& job, const base::Arguments& arguments, const base::Path& list) {
  const double start = base::steady_seconds();
  const loader::Collections all = loader::open_collections(job);
  const auto task = task::make_task(job, all.train.classes);
  const int64_t threads = job.data.threads > 0 ? job.data.threads : site::usable_cores();
  std::vector<loader::BadSample> bad = find_bad(all, *task, threads), partly;
  const auto used = std::stable_partition(bad.begin(), bad.end(), [](const auto& one) { return !one.is_used; });
  partly.assign(used, bad.end());
  bad.erase(used, bad.end());
  const auto count = std::ssize(all.train.samples) + (all.validate ? std::ssize(all.validate->samples) : 0);
  Json result = Json::object();
  result["samples"] = count;
  result["seconds"] = base::steady_seconds() - start;
  std::string lines;
  const auto put = [&](const char* key, const std::vector<loader::BadSample>& samples) {
    result[key] = Json::array();
    for (const auto& one : samples) {
      Json row = Json::object();
      row["path"] = one.path;
      row["reason"] = one.reason;
      result[key].push_back(std::move(row));
      lines += line_of(one) + "\n";
    }
  };
  put("bad_samples", bad);
  if (!partly.empty()) put("left_out", partly);
  if (!lines.empty()) {
    if (list.has_parent_path()) base::make_folders(list.parent_path());
    base::write_file(list, lines);
  }
  base::give(
      arguments, result,
      text(base::join(loader::data_lines(all, task->object_slots()), "\n"), "\nchecked ", format_count(count),
           " samples in ", base::duration_text(base::steady_seconds() - start), ": ", bad_text(bad, partly, list)));
  return bad.empty() ? base::kExitDone : static_cast<int>(base::Blame::user);
}

}  // namespace lockstep::verbs::train
