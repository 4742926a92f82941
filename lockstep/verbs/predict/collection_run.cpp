// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/predict/collection_run.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/results/page.h"
#include "lockstep/results/part_files.h"
#include "lockstep/results/terms.h"
#include "lockstep/run/folder.h"
#include "lockstep/run/journal.h"
#include "lockstep/run/order.h"
#include "lockstep/site/cores.h"
#include "lockstep/verbs/predict/image_files.h"
#include "lockstep/verbs/predict/predict.h"

namespace lockstep::verbs::predict {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using results::RecordHead;
using results::ResultPaths;

constexpr double kSyncSeconds = 5;       // of records a machine that loses its power may lose
constexpr double kTellSeconds = 10;      // between two events in the journal
constexpr double kReserve = 60;          // of the walltime, to end in order
constexpr int64_t kMostOfALoader = 512;  // batches: it remembers its bad samples for as long as it lives
constexpr int kPictureQuality = 88, kThumbnailQuality = 80;

int64_t num_images(const loader::Collection& collection) {
  return static_cast<int64_t>(collection.samples.size());
}

// As RunFolder, in the words of this command.
std::unique_ptr<run::RunFolder> hold(const ResultPaths& paths) {
  try {
    return std::make_unique<run::RunFolder>(paths.files());
  } catch (const Error&) {
    const auto holder = run::read_holder(paths.files());
    if (!holder) throw;
    throw Error(
        Blame::user,
        text(paths.to.string(), ": process ", holder->pid, " on host ", holder->host, " works on it since ",
             holder->since),
        text("wait for it, end it (on ", holder->host, ": kill ", holder->pid, "), or choose another --to FILE"));
  }
}

// What rank 0 alone does: it holds the folder, knows what is done, and puts the results together.
class HeldResults {
 public:
  HeldResults(const training::Trained& trained, const loader::Collection& collection, const CollectionOptions& options,
              const ImageFiles& files)
      : collection_(collection), options_(options), files_(files), paths_{options.to} {
    held_ = hold(paths_);
    terms_ = results::terms_of(trained.job, trained.weights, trained.classes, options.top);
    if (options.trusted) options.trusted->add_terms(terms_.keys);
    if (options.columns) terms_.keys["--columns"] = "sha256:" + options.columns->sha256();
    model_ = terms_.model();
    if (options.again) forget();
    results::check_terms(paths_, terms_);
    journal_ = std::make_unique<run::Journal>(paths_.files() / "journal.jsonl");
  }

  const std::string& model() const { return model_; }
  int64_t before() const { return before_; }

  // By image: whether its record is there, of this model and of the file as it is now.
  std::vector<uint8_t> find_done(int64_t ranks) {
    Seen seen;
    const auto ids = ids_by_name();
    results::RecordIndex index(num_images(collection_));
    const auto accept = [&](const RecordHead& head) { return accept_current(head, ids, seen); };
    if (base::is_there(paths_.to)) seen.lines = index.add_results(paths_.to, accept);
    for (const auto& file : results::part_files(paths_.parts())) index.add_part(file, accept);
    refuse(seen);
    std::vector<uint8_t> done(static_cast<size_t>(index.size()));
    for (int64_t i = 0; i < index.size(); ++i) done[static_cast<size_t>(i)] = index.has(i) ? 1 : 0;
    before_ = index.done();
    is_settled_ = before_ == index.size() && index.in_parts() == 0 && seen.withdrawn == 0 &&
                  (!options_.pictures || base::is_there(paths_.page()));
    failed_before_ = seen.failed;
    results::write_terms(paths_, terms_);
    if (!is_settled_) base::make_synced_folders(paths_.parts());
    Json fields = Json::object();
    fields["ranks"] = ranks;
    fields["total_steps"] = index.size();
    fields["model"] = model();
    journal_->append("start", fields);
    tell(before_);
    return done;
  }

  // For whoever watches over the ranks or over a chain of jobs: a record is what a step is to a training.
  void tell(int64_t done) {
    held_->ensure_held();
    Json fields = Json::object();
    fields["step"] = done;
    journal_->append("save", fields);
    journal_->sync();
  }

  // The number of images that could not be read. Nothing is written where nothing has changed.
  int64_t merge() {
    if (is_settled_) return failed_before_;
    const auto ids = ids_by_name();
    results::RecordIndex index(num_images(collection_));
    const auto accept = [&](const RecordHead& head) {
      const auto found = ids.find(head.path);
      return found == ids.end() || head.model != model_ ? -1 : found->second;
    };
    if (base::is_there(paths_.to)) index.add_results(paths_.to, accept);
    for (const auto& file : results::part_files(paths_.parts())) index.add_part(file, accept);
    if (index.done() < index.size()) {
      throw Error(
          Blame::machine,
          text(index.size() - index.done(), " of ", index.size(), " records did not stay in ", paths_.parts().string()),
          "look at that file system; the same command does them again");
    }
    held_->ensure_held();
    const int64_t failed = write_results(index);
    std::error_code ignored;  // they count for nothing beside the results file
    std::filesystem::remove_all(paths_.parts(), ignored);
    Json fields = Json::object();
    fields["images"] = index.size();
    fields["failed"] = failed;
    journal_->append("end", fields);
    journal_->sync();
    return failed;
  }

 private:
  using Ids = std::unordered_map<std::string, int64_t>;
  struct Seen {               // in the results file and the parts
    int64_t lines = 0;        // no records
    std::string other_model;  // of the first record of another one
    std::string elsewhere;    // the first image that is there, but not in this collection
    int64_t withdrawn = 0;    // records of images that are no more: left out from now on
    int64_t failed = 0;       // images of this collection that could not be read
  };

  Ids ids_by_name() const {
    Ids ids;
    ids.reserve(collection_.samples.size());
    for (int64_t id = 0; id < num_images(collection_); ++id)
      ids.emplace(results::readable_name(collection_.name_of(id)), id);
    return ids;
  }

  int64_t accept_current(const RecordHead& head, const Ids& ids, Seen& seen) const {
    if (head.model != model_) {
      if (seen.other_model.empty()) seen.other_model = head.model;
      return -1;
    }
    const auto found = ids.find(head.path);
    if (found == ids.end()) {
      std::error_code unknown;  // a sample of a shard lies "below" a file
      const bool is_gone =
          !base::is_there(head.path) && !std::filesystem::is_regular_file(base::Path(head.path).parent_path(), unknown);
      if (is_gone) ++seen.withdrawn;
      if (!is_gone && seen.elsewhere.empty()) seen.elsewhere = head.path;
      return -1;
    }
    if (head.failed) ++seen.failed;
    if (files_.state_of(found->second) != head.file) return -1;
    const bool drawn = !options_.pictures || head.failed || base::is_there(picture_of(head.path));
    return drawn ? found->second : -1;
  }

  base::Path picture_of(const std::string& path) const {
    return paths_.pictures() / results::picture_name(path, collection_.root);
  }

  void refuse(const Seen& seen) const {
    const std::string what = seen.lines > 0 ? text(seen.lines, " lines that are no records of predict")
                             : !seen.other_model.empty()
                                 ? text("records of the model ", seen.other_model, ", not of ", model())
                             : !seen.elsewhere.empty() ? text("records of other images, such as ", seen.elsewhere)
                                                       : "";
    if (what.empty()) return;
    throw Error(Blame::user, text(paths_.to.string(), " has ", what), results::fix_for_other_records());
  }

  // The lock and the history stay.
  void forget() const {
    for (const auto& path : {paths_.to, paths_.parts(), paths_.pictures(), paths_.thumbnails(), paths_.terms()}) {
      std::filesystem::remove_all(path);  // the terms last: they say whose the rest is
    }
  }

  int64_t write_results(const results::RecordIndex& index) const {
    results::DraftedFile file(paths_.to);
    std::unique_ptr<results::ContactPage> page;
    if (options_.pictures) page = std::make_unique<results::ContactPage>(paths_, terms_, collection_.root);
    int64_t failed = 0, done = 0;
    index.for_each([&](int64_t, std::string_view record) {
      file.write(record);
      file.write("\n");
      if (results::read_head(record)->failed) ++failed;
      if (page) page->add(record);
      if (++done % 1000 == 0) options_.got_on(done);
    });
    if (page) page->write();  // before the results: whoever finds them finds it
    file.commit();
    return failed;
  }

  const loader::Collection& collection_;
  const CollectionOptions& options_;
  const ImageFiles& files_;
  ResultPaths paths_;
  std::unique_ptr<run::RunFolder> held_;
  results::Terms terms_;
  std::string model_;
  std::unique_ptr<run::Journal> journal_;
  int64_t before_ = 0;
  bool is_settled_ = false;  // the results file has all records, and only those
  int64_t failed_before_ = 0;
};

// What rank 0 tells the others, so that all share the same work.
struct Share {
  std::string model;
  std::vector<int64_t> batches;        // numbers of those that hold an image without a record
  std::optional<double> seconds_left;  // of the walltime
};

std::vector<int64_t> open_batches(const std::vector<uint8_t>& done, int64_t batch) {
  std::vector<int64_t> open;
  const auto images = static_cast<int64_t>(done.size());
  for (int64_t first = 0; first < images; first += batch) {
    const auto begin = done.begin() + first, end = done.begin() + std::min(images, first + batch);
    if (std::find(begin, end, 0) != end) open.push_back(first / batch);
  }
  return open;
}

Share tell_share(const Share& mine, comm::Group& group) {
  Json words = Json::object();
  words["model"] = mine.model;
  words["batches"] = Json::array_of(mine.batches);
  words["seconds_left"] = mine.seconds_left ? Json(*mine.seconds_left) : Json();
  const Json told = base::parse_json(comm::broadcast_text(group, words.dump(-1)), "the share of rank 0",
                                     {.max_bytes = size_t{1} << 30U});
  Share share{told.at("model").as_string(), {}, {}};
  for (const auto& number : told.at("batches").items()) share.batches.push_back(number.as_int());
  if (!told.at("seconds_left").is_null()) share.seconds_left = told.at("seconds_left").as_double();
  return share;
}

// Every rank lists the collection by itself: numbers of images mean the same on all of them.
void check_same_images(const loader::Collection& collection, const sources::ImageColumns* columns, comm::Group& group) {
  if (group.size() == 1) return;
  base::Sha256 hash;
  for (int64_t id = 0; id < num_images(collection); ++id) hash.update(collection.name_of(id) + "\n");
  if (columns) hash.update(columns->sha256());
  const auto all = comm::gather_texts(group, hash.hex());
  const auto other = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one != all.front(); });
  if (other == all.end()) return;
  throw Error(Blame::user,
              text("rank ", other - all.begin(), " sees other images", columns ? " or another list of --columns" : "",
                   " than rank 0"),
              "let nobody change the collection while it is listed; all nodes must see the same folder");
}

PredictOptions way_of(const CollectionOptions& options) {
  PredictOptions way;
  way.top = options.top;
  way.device = options.device;
  way.trusted = options.trusted;
  way.ensemble = options.ensemble;
  way.columns = options.columns;
  return way;
}

// One rank's part of it.
class CollectionRank {
 public:
  CollectionRank(const training::Trained& trained, const loader::Collection& collection,
                 const CollectionOptions& options, const ImageFiles& files, Share share, comm::Group& group)
      : trained_(trained),
        collection_(collection),
        options_(options),
        files_(files),
        share_(std::move(share)),
        group_(group),
        paths_{options.to},
        batch_(prediction_batch(trained.job)),
        predictor_(trained, collection, way_of(options)),
        writer_(paths_.parts(), group.rank()) {}

  // Why it stopped; empty: all of its share is done. `tell`: of rank 0, now and then.
  std::string work(const std::function<void(int64_t done)>& tell) {
    const run::Range mine =
        run::rank_range({0, static_cast<int64_t>(share_.batches.size())}, group_.rank(), group_.size());
    for (int64_t at = mine.begin; at < mine.end && stop_.empty();) {
      int64_t end = at + 1;
      while (end < mine.end && end - at < kMostOfALoader && batch_at(end) == batch_at(end - 1) + 1) ++end;
      work_through(batch_at(at), end - at, mine, tell);
      at = end;
    }
    writer_.sync();
    return stop_;
  }

  int64_t predicted() const { return predicted_; }

 private:
  int64_t batch_at(int64_t i) const { return share_.batches[static_cast<size_t>(i)]; }

  // `count` batches that follow each other.
  void work_through(int64_t first, int64_t count, run::Range mine, const std::function<void(int64_t done)>& tell) {
    const auto loader = prediction_loader(trained_, collection_,
                                          {.seed = run::kDefaultSeed, .epoch = 0, .consumed = first * batch_}, count);
    for (int64_t i = 0; i < count; ++i) {
      stop_ = why_stop();
      if (!stop_.empty()) return;
      predict_batch(loader->next(), *loader);
      options_.got_on(predicted_);
      const double now = base::steady_seconds();
      if (now - synced_ > kSyncSeconds) writer_.sync(), synced_ = now;
      if (now - told_ > kTellSeconds) tell(predicted_), told_ = now;
      show(mine, now);
    }
  }

  std::string why_stop() const {
    std::string why = options_.stop();
    if (!why.empty() || !share_.seconds_left) return why;
    const double reserve = std::min(kReserve, *share_.seconds_left / 10);
    return base::steady_seconds() - started_ + reserve > *share_.seconds_left ? "walltime" : "";
  }

  void predict_batch(const loader::Batch& batch, const loader::Loader& loader) {
    std::vector<ImageFile> files(static_cast<size_t>(batch.size()));
    const int64_t threads = site::cores_per_rank();
    Parallel looking(batch.size(), threads, [&](int64_t i) {
      files[static_cast<size_t>(i)] = files_.read(batch.sample_ids[static_cast<size_t>(i)]);
    });
    const std::vector<Prediction> predictions = predictor_.predict(batch, loader);
    looking.wait();
    if (options_.pictures) {
      Parallel(batch.size(), threads, [&](int64_t i) {
        draw(files[static_cast<size_t>(i)], predictions[static_cast<size_t>(i)].record);
      }).wait();
    }
    std::vector<std::string> records;
    const std::string time = results::time_now();
    for (size_t i = 0; i < files.size(); ++i) {
      const Prediction& prediction = predictions[i];
      const RecordHead head{files[i].path, files[i].sha256, files[i].state, share_.model, time, prediction.failed()};
      records.push_back(prediction.failed() ? results::failed_line(head, results::readable_name(prediction.error))
                                            : results::record_line(head, prediction.record));
    }
    writer_.append(records);  // behind its pictures: what has a record has them
    predicted_ += batch.size();
  }

  // Not synced: a picture that a power failure takes is drawn again by whoever misses it.
  static void put_picture(const base::Path& path, const image::Image& image, int quality) {
    base::make_folders(path.parent_path());
    base::FileWriter file(path, base::FileWriter::Mode::truncate);
    file.write(image::encode_jpeg(image, quality));
    file.close();
  }

  void draw(ImageFile& file, const Json& record) const {
    if (file.picture.pixels.empty() || record.is_null()) return;
    put_picture(paths_.thumbnails() / results::thumbnail_name(file.sha256), shrink_to(file.picture, kThumbnailSize),
                kThumbnailQuality);
    trained_.task->draw(record, file.picture);
    base::Path to = paths_.pictures() / results::picture_name(file.path, collection_.root);
    put_picture(to, file.picture, kPictureQuality);
    if (const std::string moving = trained_.task->animation(record); !moving.empty())
      base::write_file(to.replace_extension(".png"), moving);
  }

  void show(run::Range mine, double now) const {
    if (group_.rank() != 0) return;
    const int64_t all = std::min(mine.size() * batch_, num_images(collection_));
    const double rate = static_cast<double>(predicted_) / std::max(now - started_, 1e-3);
    options_.show(text(predicted_, " of ", all, group_.size() > 1 ? " images of rank 0, " : " images, ",
                       base::fixed(rate * static_cast<double>(group_.size()), 1), "/s, ",
                       base::duration_text(static_cast<double>(std::max<int64_t>(0, all - predicted_)) / rate),
                       " left"));
  }

  const training::Trained& trained_;
  const loader::Collection& collection_;
  const CollectionOptions& options_;
  const ImageFiles& files_;
  Share share_;
  comm::Group& group_;
  ResultPaths paths_;
  int64_t batch_;
  BatchPredictor predictor_;
  results::PartWriter writer_;
  double started_ = base::steady_seconds(), synced_ = started_, told_ = started_;
  int64_t predicted_ = 0;
  std::string stop_;
};

// Sums what the ranks did; the first reason to stop counts for all.
void add_ranks(CollectionResult& result, int64_t predicted, const std::string& stop, comm::Group& group) {
  Json mine = Json::array({Json(predicted), Json(stop)});
  int64_t rank = 0;
  for (const auto& words : comm::gather_texts(group, mine.dump(-1))) {
    const Json theirs = base::parse_json(words, "the end of a rank");
    result.predicted += theirs.items()[0].as_int();
    const std::string& why = theirs.items()[1].as_string();
    if (result.stop_reason.empty() && !why.empty()) {
      result.stop_reason = rank == 0 || why == "walltime" ? why : text(why, " on rank ", rank);
    }
    ++rank;
  }
}

}  // namespace

Json CollectionResult::to_json() const {
  Json all = Json::object();
  all["images"] = images;
  all["before"] = before;
  all["predicted"] = predicted;
  all["failed"] = finished() ? Json(failed) : Json();
  all["finished"] = finished();
  all["stop_reason"] = stop_reason;
  all["model"] = model;
  return all;
}

CollectionResult predict_into(const training::Trained& trained, const loader::Collection& collection,
                              const CollectionOptions& options, comm::Group& group) {
  check_same_images(collection, options.columns, group);
  const ImageFiles files(collection, options.pictures ? ImageFiles::Pictures::decode : ImageFiles::Pictures::none);
  std::unique_ptr<HeldResults> held;
  Share share;
  if (group.rank() == 0) {
    held = std::make_unique<HeldResults>(trained, collection, options, files);
    share = {held->model(), open_batches(held->find_done(group.size()), prediction_batch(trained.job)),
             options.seconds_left};
  }
  share = tell_share(share, group);
  CollectionResult result;
  result.images = num_images(collection);
  result.model = share.model;
  const bool any_left = !share.batches.empty();
  int64_t predicted = 0;
  std::string stop;
  if (any_left) {
    CollectionRank rank(trained, collection, options, files, std::move(share), group);
    stop = rank.work([&](int64_t done) {
      if (held) held->tell(held->before() + done);
    });
    predicted = rank.predicted();
  }
  add_ranks(result, predicted, stop, group);
  if (held) {
    result.before = held->before();
    if (any_left) held->tell(std::min(result.images, result.before + result.predicted));
    if (result.finished()) result.failed = held->merge();
  }
  const Json agreed =
      base::parse_json(comm::broadcast_text(group, Json::array({Json(result.before), Json(result.failed)}).dump(-1)),
                       "the end of rank 0");
  result.before = agreed.items()[0].as_int();
  result.failed = agreed.items()[1].as_int();
  return result;
}

}  // namespace lockstep::verbs::predict
