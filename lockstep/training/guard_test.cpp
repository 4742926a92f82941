// SPDX-License-Identifier: Apache-2.0
#include "lockstep/training/guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/collection.h"
#include "lockstep/model/snapshot.h"
#include "lockstep/run/journal.h"
#include "lockstep/training/short_run.h"
#include "lockstep/training/small_training.h"
#include "lockstep/training/train.h"

namespace lockstep::training {
namespace {

std::vector<int64_t> numbers_of(const run::History& history, std::string_view event, std::string_view key) {
  std::vector<int64_t> values;
  for (const auto& line : history.events) {
    if (line.at("event").as_string() == event) values.push_back(line.at(key).as_int());
  }
  return values;
}

// The samples of these steps, in the order in which a run has written them down.
std::vector<int64_t> samples_of(const base::Path& run, int64_t first, int64_t last) {
  std::vector<int64_t> ids;
  for (const auto& line : base::split(base::read_file(run / "history" / "rank-0.jsonl"), '\n')) {
    if (line.empty()) continue;
    const auto said = base::parse_json(line, "history");
    if (!said.find("step") || said.at("step").as_int() < first || said.at("step").as_int() > last) continue;
    for (const auto& id : said.at("samples").items()) ids.push_back(id.as_int());
  }
  return ids;
}

spec::Job images_job(const base::Path& images) {
  spec::Job what;
  what.name = "test";
  what.model.name = "smallcnn";
  what.model.width = 4;
  what.data.image_size = 16;
  what.data.threads = what.training.threads = 1;
  what.training.optimizer.lr = 0.05;
  what.data.train = images.string();
  return what;
}

void write_images(const base::Path& images, const image::Image& image, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto file = images / base::text("class-", i % 3) / base::text(100 + i, ".jpg");
    base::make_folders(file.parent_path());
    base::write_file(file, image::encode_jpeg(image, 95));
  }
}

// Who skips bad samples does not want to train through a file system that is gone.
TEST(GuardTest, AFileSystemThatIsGoneIsNoBadSample) {
  const base::TemporaryFolder folder;
  const auto images = folder.path() / "images";
  for (const bool validates : {false, true}) {
    write_images(images, image::Image(16, 16), 24);
    write_images(folder.path() / "others", image::Image(16, 16), 24);
    spec::Job what = images_job(validates ? folder.path() / "others" : images);
    if (validates) what.data.validate = images.string();
    what.data.on_bad_sample = spec::OnBadSample::skip;
    what.training.global_batch = 4;  // 6 steps an epoch
    what.training.epochs = 8;
    TrainOptions options;
    options.run = folder.path() / (validates ? "second" : "first");
    bool is_gone = false;
    options.stop = [&] {
      if (!is_gone && computes_step(*options.activity, 8)) {
        std::filesystem::rename(images, folder.path() / "gone");
        is_gone = true;
      }
      return std::string();
    };
    try {
      train(what, options, *comm::single_group());
      FAIL() << "trained without samples";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::machine) << error.what();
      EXPECT_NE(std::string(error.what()).find("could be read"), std::string::npos) << error.what();
    }
    std::filesystem::rename(folder.path() / "gone", images);
  }
}

// With batches of one, a bad sample is a whole step of them.
TEST(GuardTest, ABadSampleThatIsAWholeBatchIsSkipped) {
  const base::TemporaryFolder folder;
  const auto images = folder.path() / "images";
  write_images(images, image::Image(16, 16), 12);
  base::write_file(images / "class-0" / "100.jpg", "no image");
  spec::Job what = images_job(images);
  what.model.name = "mlp";
  what.data.on_bad_sample = spec::OnBadSample::skip;
  what.training.global_batch = 1;
  what.training.epochs = 2;
  TrainOptions options;
  options.run = folder.path() / "run";
  const auto result = train(what, options, *comm::single_group());
  EXPECT_TRUE(result.finished);
  EXPECT_EQ(result.bad_samples, 1);
}

// Black images; white ones become infinite by a normalisation that black ones do not feel. Three batches of them.
TEST(GuardTest, DataWithoutAFiniteLossAreLeftOutAndTheRunEnds) {
  const base::TemporaryFolder folder;
  image::Image image(16, 16);
  write_images(folder.path() / "images", image, 120);
  spec::Job what = images_job(folder.path() / "images");
  what.data.mean.assign(3, 0), what.data.std.assign(3, 1e-39);
  what.training.global_batch = 4;  // 30 steps an epoch
  what.training.steps = 20;
  what.checkpoint.every_epochs = 0.2;  // 6 steps
  const auto train_and_note = [&](const base::Path& run) {
    TrainOptions options;
    options.run = run;
    options.history = true;
    return train(what, options, *comm::single_group());
  };
  ASSERT_EQ(train_and_note(folder.path() / "sound").rewinds, 0);

  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{255});
  const auto collection = loader::scan_folder(what.data.train);
  for (const int64_t id : samples_of(folder.path() / "sound", 9, 11)) {
    base::write_file(collection.name_of(id), image::encode_jpeg(image, 95));
  }
  const auto run = folder.path() / "struck";
  const auto result = train_and_note(run);
  EXPECT_TRUE(result.finished && result.step == 20 && result.rewinds == 1);
  const auto history = run::read_journal(run / "journal.jsonl");
  EXPECT_EQ(numbers_of(history, "nonfinite", "step"), (std::vector<int64_t>{9, 10, 11}));
  EXPECT_EQ(numbers_of(history, "rewind", "step"), (std::vector<int64_t>{6}));
  EXPECT_EQ(numbers_of(history, "rewind", "from"), (std::vector<int64_t>{11}));
  EXPECT_EQ(numbers_of(history, "rewind", "data_shift"), (std::vector<int64_t>{5}));
  // Step 7, taken again, has the data that step 12 of the sound run had: the struck ones are passed over.
  const auto seven = samples_of(run, 7, 7);
  ASSERT_EQ(seven.size(), 8U);
  EXPECT_EQ(std::vector<int64_t>(seven.begin() + 4, seven.end()), samples_of(folder.path() / "sound", 12, 12));
}

spec::Job small_job() {
  spec::Job job;
  job.name = "test";
  job.model.name = "smallcnn";
  job.model.width = 4;
  job.model.classes = 3;
  job.data.train = "synthetic";
  job.data.samples = 24;
  job.data.image_size = 16;
  job.data.threads = job.training.threads = 1;
  job.training.global_batch = 4;
  job.training.steps = 40;
  job.training.optimizer.lr = 0.01;
  job.checkpoint.every_epochs = 1000;  // nothing by itself
  return job;
}

std::string error_of(const spec::Job& job, const base::Path& run) {
  TrainOptions options;
  options.run = run;
  try {
    train(job, options, *comm::single_group());
  } catch (const base::Error& error) {
    return base::text(error.message(), " / ", error.fix());
  }
  return "";
}

TEST(GuardTest, ASpikeBeforeTheFirstSaveGoesBackToTheStart) {
  const base::TemporaryFolder folder;
  auto job = small_job();
  job.training.spike_factor = 1.0001;  // whatever is above the median, sooner or later
  job.training.max_rewinds = 1;
  const std::string said = error_of(job, folder.path() / "run");
  const auto history = run::read_journal(folder.path() / "run" / "journal.jsonl");
  ASSERT_FALSE(history.named("rewind").empty());
  EXPECT_EQ(history.named("rewind")[0].at("step").as_int(), 0);
  EXPECT_EQ(history.named("rewind")[0].at("checkpoint").as_string(), "step-00000000");
  EXPECT_NE(said.find("1 rewind has not led beyond it"), std::string::npos) << said;
}

TEST(GuardTest, SaysWhyItDoesNotGoBack) {
  const base::TemporaryFolder folder;
  auto job = small_job();
  job.training.optimizer.name = spec::OptimizerName::sgd;
  job.training.optimizer.lr = 1e30;
  const std::string none = error_of(job, folder.path() / "none");
  EXPECT_NE(none.find("no checkpoint to go back to yet"), std::string::npos) << none;
  EXPECT_EQ(none.find("the last checkpoint is good"), std::string::npos) << none;
  job.checkpoint.every_epochs = 1.0 / 6;  // every step
  const std::string used_up = error_of(job, folder.path() / "used_up");
  EXPECT_NE(used_up.find("3 rewinds have not led beyond it"), std::string::npos) << used_up;
  EXPECT_NE(used_up.find("the last checkpoint is good"), std::string::npos) << used_up;
  job.training.max_rewinds = 0;
  EXPECT_NE(error_of(job, folder.path() / "off").find("training.max_rewinds is 0"), std::string::npos);
}

TEST(GuardTest, AStopOfAnotherRankKeepsItsNameAndSaysWhere) {
  const base::TemporaryFolder folder;
  std::string reasons[2];
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    TrainOptions options;
    options.run = folder.path() / "run";
    options.stop = [&] { return std::string(group.rank() == 1 ? "SIGTERM" : ""); };
    reasons[group.rank()] = train(small_job(), options, group).stop_reason;
  });
  EXPECT_EQ(reasons[0], "SIGTERM on rank 1");
  EXPECT_EQ(reasons[1], "SIGTERM on rank 1");
  const auto history = run::read_journal(folder.path() / "run" / "journal.jsonl");
  ASSERT_EQ(history.named("stop").size(), 1U);
  EXPECT_EQ(history.named("stop")[0].at("reason").as_string(), "SIGTERM on rank 1");
}

// A rank of a group that tells other sums of its weights than it has.
class OtherWeights : public comm::Group {
 public:
  OtherWeights(comm::Group& inner, int64_t tensors) : inner_(inner), tensors_(tensors) {}
  std::vector<at::Tensor> all_gather(const at::Tensor& tensor) override {
    return inner_.all_gather(tensor.numel() == tensors_ && rank() == 1 ? tensor + 1 : tensor);
  }
  int64_t rank() const override { return inner_.rank(); }
  int64_t size() const override { return inner_.size(); }
  c10::intrusive_ptr<c10d::ProcessGroup> group() override { return inner_.group(); }
  void all_reduce_sum(at::Tensor& tensor) override { inner_.all_reduce_sum(tensor); }
  void broadcast(at::Tensor& tensor, int64_t root) override { inner_.broadcast(tensor, root); }
  void all_gather_into(const at::Tensor& in, at::Tensor& out) override { inner_.all_gather_into(in, out); }
  void reduce_scatter_sum(const at::Tensor& in, at::Tensor& out) override { inner_.reduce_scatter_sum(in, out); }
  void all_to_all(const at::Tensor& in, at::Tensor& out) override { inner_.all_to_all(in, out); }
  void send(const at::Tensor& tensor, int64_t peer, int tag) override { inner_.send(tensor, peer, tag); }
  void receive(at::Tensor& tensor, int64_t peer, int tag) override { inner_.receive(tensor, peer, tag); }
  void barrier() override { inner_.barrier(); }
  [[noreturn]] void abort(int exit_code) override { std::_Exit(exit_code); }
  double seconds_waited() const override { return inner_.seconds_waited(); }

 private:
  comm::Group& inner_;
  int64_t tensors_;
};

TEST(GuardTest, RanksOfAShortRunAreComparedBeforeItIsSaved) {
  const base::TemporaryFolder folder;
  spec::Job job = small_job();
  const auto tensors = std::ssize(model::all_tensors(model::make_network(job.model, job.data.image_size, 1, at::kCPU)));
  for (const int64_t every : {100, 0}) {  // more than the run has, and never
    job.training.check_sync_every = every;
    const auto run = folder.path() / std::to_string(every);
    std::string heard[2];
    comm::run_thread_ranks(2, [&](comm::Group& group) {
      OtherWeights other(group, tensors);
      TrainOptions options;
      options.run = run;
      try {
        train(job, options, other);
      } catch (const base::Error& error) {
        heard[group.rank()] = error.message();
      }
    });
    EXPECT_EQ(heard[0], heard[1]);
    EXPECT_EQ(heard[0].find("no longer holds the weights of the others") == std::string::npos, every == 0) << heard[0];
    EXPECT_EQ(std::filesystem::exists(run / "checkpoints"), every == 0);
  }
}

// A guard of a run that takes no step: it is told the results.
struct Guarded {
  Guarded(const SmallTraining& small, comm::Group& group)
      : context(small.job, small.options, group),
        saver(context),
        guard(context, saver),
        step(SmallTraining::step_of(context)),
        feed(context, context.timetable.phase_at(0), [] { return std::string(); }) {}

  bool accepts(const step::StepResult& result, int64_t rows = 8) {
    ++context.state.step;
    return guard.accepts(result, rows, step, feed);
  }
  std::string complaint(const step::StepResult& result) {
    try {
      accepts(result);
    } catch (const base::Error& error) {
      return error.message();
    }
    return "";
  }

  TrainingContext context;
  Saver saver;
  Guard guard;
  step::Step step;
  Feed feed;
};

constexpr step::StepResult kSound{.loss = 1, .samples = 8, .gradient_norm = 1};
constexpr step::StepResult kNotFinite{.samples = 8, .finite = false};

TEST(GuardTest, GoesBackToTheCheckpointBeforeAndThenToEarlierOnes) {
  SmallTraining small;
  small.job.training.max_nonfinite_steps = 2;
  small.job.training.max_rewinds = 2;
  const auto group = comm::single_group();
  Guarded run(small, *group);
  const TrainingState& state = run.context.state;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(run.accepts(kSound));
    run.saver.save_durably(run.step);
  }
  const auto weights = model::all_tensors(run.context.network);
  const at::Tensor before = weights[0].tensor.detach().clone();
  weights[0].tensor.detach().add_(1);
  EXPECT_TRUE(run.accepts(kNotFinite));
  EXPECT_FALSE(run.saver.is_due());
  EXPECT_FALSE(run.accepts(kNotFinite));  // step 5
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.data_shift, 2);
  EXPECT_EQ(state.nonfinite, 0);
  EXPECT_TRUE(weights[0].tensor.equal(before));
  EXPECT_TRUE(run.accepts(kNotFinite));
  EXPECT_FALSE(run.accepts(kNotFinite));  // step 5 again: it did not lead beyond it
  EXPECT_EQ(state.step, 2);
  EXPECT_EQ(state.data_shift, 5);
  EXPECT_EQ(run.guard.num_rewinds(), 2);
  EXPECT_EQ(numbers_of(run::read_journal(small.options.run / "journal.jsonl"), "rewind", "step"),
            (std::vector<int64_t>{3, 2}));
  run.accepts(kNotFinite);
  EXPECT_NE(run.complaint(kNotFinite).find("2 rewinds have not led beyond it"), std::string::npos);
}

TEST(GuardTest, ARunThatGetsBeyondThatStepMayGoBackAgain) {
  SmallTraining small;
  small.job.training.max_nonfinite_steps = small.job.training.max_rewinds = 1;
  const auto group = comm::single_group();
  Guarded run(small, *group);
  run.saver.save_durably(run.step);
  EXPECT_FALSE(run.accepts(kNotFinite));
  EXPECT_TRUE(run.accepts(kSound));
  EXPECT_FALSE(run.accepts(kNotFinite));  // step 2, beyond 1
  EXPECT_NE(run.complaint(kNotFinite).find("1 rewind has not led beyond it"), std::string::npos);
}

TEST(GuardTest, EveryRankGoesBackToTheSameCheckpoint) {
  SmallTraining small;
  small.job.training.spike_factor = 3;
  comm::run_thread_ranks(2, [&](comm::Group& group) {
    Guarded run(small, group);
    run.saver.save_durably(run.step);
    group.barrier();
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(run.accepts(kSound));
    EXPECT_FALSE(run.accepts({.loss = 4, .samples = 8, .gradient_norm = 1}));
    EXPECT_EQ(run.context.state.step, 0);
    EXPECT_EQ(run.context.state.data_shift, 17);
    EXPECT_TRUE(run.accepts({.loss = 4, .samples = 8, .gradient_norm = 1})) << "what it knew of the loss is forgotten";
  });
}

TEST(GuardTest, EightSamplesInARowThatCannotBeReadEndTheRun) {
  SmallTraining small;
  const auto group = comm::single_group();
  Guarded run(small, *group);
  for (int i = 0; i < 7; ++i) EXPECT_TRUE(run.accepts({.samples = 0}, 1));
  EXPECT_TRUE(run.accepts(kSound));
  EXPECT_NE(run.complaint({.samples = 0}).find("step 9: not one of the last 8 training samples could be read"),
            std::string::npos);
}

}  // namespace
}  // namespace lockstep::training
