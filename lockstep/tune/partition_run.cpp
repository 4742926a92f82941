// SPDX-License-Identifier: Apache-2.0
#include "lockstep/tune/partition_run.h"

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/run/record_file.h"
#include "lockstep/run/torn_record.h"
#include "lockstep/tune/child.h"
#include "lockstep/tune/sobol.h"
#include "lockstep/tune/study_run.h"

namespace lockstep::tune {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;

constexpr double kSyncSeconds = 5;
constexpr size_t kLongestLabel = 200;

struct Stopped {
  std::string why;
};

// Which points have which label; kept in a file as they come.
class Memory {
 public:
  explicit Memory(const base::Path& path, const Json& terms) : path_(path), file_(nullptr) {
    const bool there = base::is_there(path);
    if (there) read(terms);
    file_ = std::make_unique<run::RecordFile>(path);
    if (lines_ == 0) file_->append(terms.dump(-1) + "\n");
  }

  // The label of the i-th point; none: not evaluated yet. User error when that was another point.
  const std::string* find(int64_t index, const std::string& values) const {
    const auto found = labels_.find(index);
    if (found == labels_.end()) return nullptr;
    if (found->second.first == values) return &found->second.second;
    throw Error(Blame::user,
                text(path_.string(), ": point ", index, " was (", found->second.first, "), is now (", values, ")"),
                "the folder is of another version of lockstep: name another by --to");
  }

  void keep(int64_t index, const std::string& values, const std::string& label) {
    Json line = Json::object();
    line["i"] = index;
    line["x"] = values;
    line["label"] = label;
    file_->append(line.dump(-1) + "\n");
    labels_[index] = {values, label};
    if (base::steady_seconds() - synced_ < kSyncSeconds) return;
    synced_ = base::steady_seconds();
    file_->sync();
  }

  void sync() { file_->sync(); }
  int64_t size() const { return static_cast<int64_t>(labels_.size()); }

 private:
  // A torn last line is cut off: its point is evaluated again.
  void read(const Json& terms) {
    const std::string bytes = base::read_file(path_, uint64_t{8} << 30);
    const size_t end = bytes.rfind('\n');
    const size_t whole = end == std::string::npos ? 0 : end + 1;
    if (whole < bytes.size()) run::cut_torn_record(path_, whole);
    for (size_t begin = 0; begin < whole;) {
      const size_t stop = bytes.find('\n', begin);
      const Json line = base::parse_json(bytes.substr(begin, stop - begin), text(path_.string(), ":", lines_ + 1));
      begin = stop + 1;
      if (lines_++ == 0) {
        if (line == terms) continue;
        throw Error(Blame::user, text(path_.string(), ": of another space, program, seed or number of points"),
                    "name another folder by --to, or remove this one");
      }
      labels_[line.at("i").as_int()] = {line.at("x").as_string(), line.at("label").as_string()};
    }
  }

  base::Path path_;
  std::unique_ptr<run::RecordFile> file_;
  std::map<int64_t, std::pair<std::string, std::string>> labels_;
  int64_t lines_ = 0;
  double synced_ = 0;
};

// The processes that evaluate.
class Pool {
 public:
  Pool(const PartitionOptions& options, const Space& space)
      : options_(options), space_(space), workers_(static_cast<size_t>(options.workers)) {
    std::vector<std::pair<std::string, std::string>> names;
    for (const auto& parameter : space) names.emplace_back(parameter.name, "");
    bool found = false;
    fill_in(options.program, names, &found);
    stays_ = !found;
  }

  // The label of each point, "" where the program gave none; `done` is told as each comes.
  void evaluate(const std::vector<Point>& points, const std::vector<size_t>& wanted,
                const std::function<void(size_t, const std::string&)>& done) {
    size_t next = 0;
    size_t ended = 0;
    while (ended < wanted.size()) {
      if (const std::string why = options_.stop(); !why.empty()) throw Stopped{why};
      for (auto& worker : workers_) {
        if (!worker.busy && next < wanted.size()) begin(worker, points, wanted[next++]);
        if (!worker.busy) continue;
        if (const auto label = look(worker)) {
          done(worker.point, *label);
          ++ended;
          if (next < wanted.size()) begin(worker, points, wanted[next++]);
        }
      }
      std::vector<const Child*> children;
      for (const auto& worker : workers_) {
        if (worker.busy) children.push_back(worker.child.get());
      }
      if (ended < wanted.size()) wait_for(children, 0.02);
    }
  }

  std::string values_text(const Point& point) const {
    std::vector<std::string> words;
    for (size_t i = 0; i < space_.size(); ++i)
      words.push_back(value_text(space_[i], space_[i].distribution.at(point[i])));
    return base::join(words, " ");
  }

  const std::vector<std::string>& troubles() const { return troubles_; }
  int64_t failed() const { return failed_; }

 private:
  struct Worker {
    std::unique_ptr<Child> child = nullptr;
    bool busy = false;
    size_t point = 0;
  };

  ChildOptions child_options() const {
    ChildOptions made;
    made.time_limit = options_.study.time_limit;
    made.has_input = stays_;
    return made;
  }

  void begin(Worker& worker, const std::vector<Point>& points, size_t index) {
    worker.point = index;
    worker.busy = true;
    if (stays_) {
      if (!worker.child || worker.child->ended())
        worker.child = std::make_unique<Child>(options_.program, child_options());
      worker.child->restart_clock();
      worker.child->write_line(values_text(points[index]));  // one that has died says so when it is looked at
      return;
    }
    std::vector<std::pair<std::string, std::string>> values;
    for (size_t i = 0; i < space_.size(); ++i) {
      values.emplace_back(space_[i].name, value_text(space_[i], space_[i].distribution.at(points[index][i])));
    }
    worker.child = std::make_unique<Child>(fill_in(options_.program, values), child_options());
  }

  // Its label, when it is there.
  std::optional<std::string> look(Worker& worker) {
    const bool over = worker.child->poll();
    if (!stays_ && !over) return std::nullopt;
    std::string label;
    for (const auto& line : worker.child->take_lines()) {
      if (const auto word = base::trim(line); !word.empty()) label = word;
    }
    if (stays_ && label.empty() && !over) return std::nullopt;
    worker.busy = false;
    if (!stays_ && worker.child->code() != 0) return fail(worker.child->trouble());
    if (label.empty()) return fail(over && worker.child->code() != 0 ? worker.child->trouble() : "printed no label");
    if (label.size() > kLongestLabel) return fail(text("a label of ", label.size(), " characters"));
    return label;
  }

  std::string fail(const std::string& trouble) {
    constexpr size_t kKept = 5;
    ++failed_;
    if (troubles_.size() < kKept && std::find(troubles_.begin(), troubles_.end(), trouble) == troubles_.end()) {
      troubles_.push_back(trouble);
    }
    return "";
  }

  const PartitionOptions& options_;
  const Space& space_;
  std::vector<Worker> workers_;
  bool stays_ = false;
  std::vector<std::string> troubles_;
  int64_t failed_ = 0;
};

Json terms_of(const PartitionOptions& options) {
  Json terms = Json::object();
  terms["v"] = 1;
  terms["program"] = Json::array_of(options.program);
  const Json study = spec::to_json(options.study);
  terms["space"] = study.at("space");
  terms["partition"] = study.at("partition");
  terms["seed"] = options.study.seed;
  return terms;
}

void check_space(const Space& space) {
  if (static_cast<int64_t>(space.size()) > Sobol::kMostDimensions) {
    throw Error(Blame::user, text("a space of ", space.size(), " dimensions"), "64 at most");
  }
  for (const auto& parameter : space) {
    if (!parameter.when.empty()) {
      throw Error(Blame::user, text("space.", parameter.name, ".when: regions of a space that has conditions"),
                  "partition the two cases one by one");
    }
  }
}

// Points are kept by one process: two would evaluate the same ones, and cut each other's lines off.
std::unique_ptr<run::RunFolder> hold(const base::Path& folder) {
  try {
    return std::make_unique<run::RunFolder>(folder);
  } catch (const Error&) {
    const auto holder = run::read_holder(folder);
    if (!holder) throw;
    throw Error(Blame::user,
                text(folder.string(), ": process ", holder->pid, " on host ", holder->host, " partitions it since ",
                     holder->since),
                text("wait for it, end it (on ", holder->host, ": kill ", holder->pid,
                     "), or choose another --to DIR; more processes at once: --workers N"));
  }
}

// For whoever watches over a chain of jobs: a point is what a step is to a training.
void tell_chain(const base::Path& folder, int64_t points) {
  run::Journal journal(StudyPaths{folder}.journal());
  Json fields = Json::object();
  fields["step"] = points;
  journal.append("save", fields);
}

[[noreturn]] void refuse_program(const std::vector<std::string>& troubles, int64_t failed, int64_t evaluated) {
  throw Error(Blame::user,
              text(failed, " of the first ", evaluated, " points gave no label: ", base::join(troubles, "; ")),
              "try the program by hand: it ends with exit code 0 and prints a label");
}

}  // namespace

PartitionResult run_partition(const PartitionOptions& options) {
  const Space space = make_space(options.study, nullptr);
  check_space(space);
  const auto held = hold(options.folder);
  Memory memory(options.folder / "points.jsonl", terms_of(options));
  Pool pool(options, space);
  PartitionResult result;
  int64_t index = 0;
  const double begun = base::steady_seconds();
  const Evaluate evaluate = [&](const std::vector<Point>& points) {
    std::vector<std::string> labels(points.size());
    std::vector<size_t> wanted;
    for (size_t i = 0; i < points.size(); ++i) {
      const std::string* known = memory.find(index + static_cast<int64_t>(i), pool.values_text(points[i]));
      if (known) {
        labels[i] = *known;
      } else {
        wanted.push_back(i);
      }
    }
    pool.evaluate(points, wanted, [&](size_t i, const std::string& label) {
      constexpr int64_t kFirst = 20;
      labels[i] = label;
      memory.keep(index + static_cast<int64_t>(i), pool.values_text(points[i]), label);
      ++result.evaluated;
      options.show(text(index + static_cast<int64_t>(i) + 1, " points"));
      if (result.evaluated == kFirst && 2 * pool.failed() > kFirst) {
        refuse_program(pool.troubles(), pool.failed(), result.evaluated);
      }
    });
    index += static_cast<int64_t>(points.size());
    return labels;
  };
  try {
    result.partitioned = partition_space(static_cast<int64_t>(space.size()), options.study.partition,
                                         static_cast<uint64_t>(options.study.seed), evaluate);
  } catch (const Stopped& stopped) {
    result.stopped = stopped.why;
  }
  memory.sync();
  tell_chain(options.folder, memory.size());
  result.seconds = base::steady_seconds() - begun;
  result.troubles = pool.troubles();
  if (result.partitioned && result.partitioned->regions.empty()) {
    refuse_program(pool.troubles(), result.partitioned->failures, result.partitioned->evaluations);
  }
  return result;
}

ProgramCost measure_program(const PartitionOptions& options, int64_t count) {
  const Space space = make_space(options.study, nullptr);
  check_space(space);
  PartitionOptions alone = options;
  alone.workers = 1;
  Pool pool(alone, space);
  const Sobol sobol(static_cast<int64_t>(space.size()), static_cast<uint64_t>(options.study.seed));
  std::vector<Point> points;
  std::vector<size_t> wanted;
  for (int64_t i = 0; i < count; ++i) {
    points.push_back(sobol.point(static_cast<uint64_t>(i)));
    wanted.push_back(static_cast<size_t>(i));
  }
  std::set<std::string> labels;
  const double begun = base::steady_seconds();
  pool.evaluate(points, wanted, [&](size_t, const std::string& label) { labels.insert(label); });
  ProgramCost cost;
  cost.seconds = (base::steady_seconds() - begun) / static_cast<double>(count);
  if (2 * pool.failed() > count) refuse_program(pool.troubles(), pool.failed(), count);
  labels.erase("");
  cost.labels = static_cast<int64_t>(labels.size());
  return cost;
}

}  // namespace lockstep::tune
