// SPDX-License-Identifier: Apache-2.0
#include "lockstep/forecast/search.h"

#include <gtest/gtest.h>

#include "lockstep/forecast/invented_step.h"

namespace lockstep::forecast {
namespace {

// Fits up to `most` samples a pass; recomputing doubles that. A pass costs a fixed part, so larger ones are faster.
TryLevers trial_below(int64_t rows, double most) {
  return [=](const Levers& levers) {
    Trial trial;
    trial.rows = rows;
    trial.micro_batch = levers.micro_batch > 0 ? levers.micro_batch : rows;
    trial.passes = (rows + trial.micro_batch - 1) / trial.micro_batch;
    const double factor = levers.recompute.empty() ? 1 : levers.recompute[0] == "all" ? 4 : 2;
    trial.fits = static_cast<double>(trial.micro_batch) <= most * factor;
    TimeForecast time;
    time.step.value = static_cast<double>(trial.passes) + (levers.recompute.empty() ? 0.0 : factor);
    if (levers.precision == "bf16") time.step.value /= 2;
    trial.time = time;
    return trial;
  };
}

const Reach kFp32Only{.precisions = {"fp32"}, .recompute = true};

const std::vector<BlockSaving> kOrder{{"stem", 4}, {"early", 3}, {"late", 2}, {"head", 1}};

std::vector<BlockSaving> no_savings(const TraceKey& /*trace_key*/) {
  return {};
}

TEST(SearchTest, KeepsTheJobAsWrittenWhenItFitsAndNothingIsFaster) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, kFp32Only, no_savings, trial_below(256, 300));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->levers, written);
  EXPECT_TRUE(list_changes(written, found->levers).empty());
}

TEST(SearchTest, HalvesThePassUntilItFits) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, kFp32Only, no_savings, trial_below(256, 70));
  ASSERT_TRUE(found);
  EXPECT_EQ(list_changes(written, found->levers), std::vector<std::string>{"training.micro_batch=64"});
}

TEST(SearchTest, GivesUpSavingMemoryWhereThereIsEnough) {
  const Levers written{.precision = "fp32", .recompute = {"all"}, .micro_batch = 8};
  const auto found = search(written, 256, kFp32Only, no_savings, trial_below(256, 128));
  ASSERT_TRUE(found);
  EXPECT_EQ(list_changes(written, found->levers),
            (std::vector<std::string>{"training.micro_batch=128", "training.recompute=[]"}));
}

TEST(SearchTest, RecomputesWhereNotEvenASmallPassFits) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, kFp32Only, no_savings, trial_below(256, 0.5));
  ASSERT_TRUE(found);
  EXPECT_EQ(list_changes(written, found->levers),
            (std::vector<std::string>{"training.micro_batch=2", "training.recompute=[\"all\"]"}));
  EXPECT_FALSE(search(written, 256, kFp32Only, no_savings, trial_below(256, 0.1)));
  EXPECT_FALSE(search(written, 256, {.precisions = {"fp32"}}, no_savings, trial_below(256, 0.5)));
}

// Fits cut at level `least` or above only; each level costs time.
TryLevers trial_from_level(int64_t rows, int64_t least) {
  return [=](const Levers& levers) {
    Trial trial;
    trial.rows = rows;
    trial.micro_batch = levers.micro_batch > 0 ? levers.micro_batch : rows;
    trial.fits = levers.zero >= least;
    TimeForecast time;
    time.step.value = static_cast<double>(1 + levers.zero);
    trial.time = time;
    return trial;
  };
}

TEST(SearchTest, CutsOverTheRanksAsLittleAsIsEnough) {
  const Levers written{.precision = "fp32"};
  const Reach reach{.precisions = {"fp32"}, .recompute = true, .zero = 3};
  for (const int64_t least : {1, 2, 3}) {
    const auto found = search(written, 64, reach, no_savings, trial_from_level(64, least));
    ASSERT_TRUE(found);
    EXPECT_EQ(list_changes(written, found->levers),
              (std::vector<std::string>{"training.zero=" + std::to_string(least)}));
  }
  EXPECT_FALSE(search(written, 64, {.precisions = {"fp32"}, .zero = 2}, no_savings, trial_from_level(64, 3)));
  EXPECT_FALSE(search(written, 64, {.precisions = {"fp32"}}, no_savings, trial_from_level(64, 1)));
}

TEST(SearchTest, CutsNothingWhereAPassOfSomeSizeFitsWhole) {
  const Levers written{.precision = "fp32"};
  const Reach reach{.precisions = {"fp32"}, .recompute = true, .zero = 3};
  EXPECT_EQ(search(written, 256, reach, no_savings, trial_below(256, 70))->levers.zero, 0);
}

TEST(SearchTest, TakesFewerBitsWhereTheyAreFaster) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, {.precisions = {"fp32", "bf16"}}, no_savings, trial_below(256, 300));
  EXPECT_EQ(list_changes(written, found->levers), std::vector<std::string>{"training.precision=bf16"});
}

TEST(SearchTest, OffersOnlyWhatTheStepAndTheGpuHave) {
  const auto catalogue = catalogue::load_embedded();
  const std::vector<std::string> step{"fp32", "tf32", "bf16", "amp"};
  EXPECT_EQ(precisions_for(&catalogue.gpu("k40"), step), std::vector<std::string>{"fp32"});
  EXPECT_EQ(precisions_for(&catalogue.gpu("v100-32"), step), (std::vector<std::string>{"fp32", "amp"}));
  EXPECT_EQ(precisions_for(&catalogue.gpu("a100-80"), step), step);
  EXPECT_EQ(precisions_for(&catalogue.gpu("a100-80"), {"fp32"}), std::vector<std::string>{"fp32"});
  EXPECT_EQ(precisions_for(nullptr, step), std::vector<std::string>{"fp32"});
}

TEST(SearchTest, CountsWhatABlockKeepsOfASampleWhateverThePasses) {
  for (const int64_t passes : {1, 2}) {
    const auto savings = block_savings(invented_step({.precision = "fp32", .micro_batch = 4, .passes = passes}));
    ASSERT_EQ(savings.size(), 2U);
    EXPECT_EQ(savings[0].block, "early");
    EXPECT_EQ(savings[0].bytes, 40e6);
    EXPECT_EQ(savings[1].bytes, 20e6);
  }
}

TEST(SearchTest, LeavesOutBlocksThatSaveNothing) {
  Recording recording = invented_step({.precision = "fp32", .micro_batch = 4});
  for (Event& event : recording.events) {
    if (event.bytes == int64_t{4} * 40'000'000) event.bytes = 0;
  }
  const auto savings = block_savings(recording);
  ASSERT_EQ(savings.size(), 1U);
  EXPECT_EQ(savings[0].block, "late");
}

TEST(SearchTest, RecomputesAQuarterOfTheBlocksTwoOrThree) {
  const auto sets = recompute_sets(kOrder);
  ASSERT_EQ(sets.size(), 3U);
  EXPECT_EQ(sets[0].blocks, std::vector<std::string>{"stem"});
  EXPECT_EQ(sets[1].blocks, (std::vector<std::string>{"stem", "early"}));
  EXPECT_EQ(sets[2].bytes, 9);
  EXPECT_EQ(recompute_sets({kOrder[0], kOrder[1]}).size(), 1U);
  EXPECT_TRUE(recompute_sets({kOrder[0]}).empty());
  EXPECT_TRUE(recompute_sets({}).empty());
}

// A whole pass of 10 samples keeps 100 bytes, 65 may be kept; of a smaller pass, and with all blocks recomputed, 70
// are.
TEST(SearchTest, RecomputesAsFewBlocksOfTheStepThatWasTriedAsAreEnough) {
  for (const int64_t enough : {1, 3}) {
    const auto try_levers = [&](const Levers& levers) {
      Trial trial;
      trial.rows = 10;
      trial.micro_batch = levers.micro_batch > 0 ? levers.micro_batch : 10;
      trial.capacity = 65;
      trial.trace_key.precision = levers.precision;
      const auto blocks = levers.recompute == std::vector<std::string>{"all"} ? 0 : std::ssize(levers.recompute);
      trial.memory.total = blocks >= enough ? 60 : levers == Levers{.precision = "bf16"} ? 100 : 70;
      trial.fits = trial.memory.total <= trial.capacity;
      trial.time = TimeForecast{};
      return trial;
    };
    const auto find_savings = [](const TraceKey& trace_key) {
      EXPECT_EQ(trace_key.precision, "bf16");
      return kOrder;
    };
    const Reach reach{.precisions = {"bf16"}, .recompute = true};
    const auto found = search({.precision = "fp32"}, 10, reach, find_savings, try_levers);
    ASSERT_TRUE(found);
    EXPECT_EQ(std::ssize(found->levers.recompute), enough);
  }
}

Option option_of(const std::string& name, double seconds, double rent, int64_t capacity) {
  Option option;
  option.machine_option.name = name;
  option.machine_option.gpu = catalogue::Gpu{};
  option.trial.fits = true;
  option.trial.capacity = capacity;
  option.trial.time = TimeForecast{};
  option.length = Length{.total = seconds, .jobs = 1};
  if (rent > 0) option.costs.bills.push_back({.kind = "rent", .amount = rent, .unit = "USD"});
  return option;
}

TEST(SearchTest, NamesTheFastestTheCheapestAndTheSmallest) {
  std::vector<Option> options{option_of("slow", 40, 10, 24), option_of("fast", 10, 30, 80),
                              option_of("small", 90, 0, 16), option_of("unfit", 1, 1, 8)};
  options[3].trial.fits = false;
  const Best best = find_best(options);
  EXPECT_EQ(best.fastest, 1);
  EXPECT_EQ(best.cheapest, 0);
  EXPECT_EQ(best.smallest, 2);
  compare(options, best);
  EXPECT_EQ(options[2].why,
            (std::vector<std::string>{"the smallest of these that holds it", "9.0 times slower than fast"}));
  EXPECT_TRUE(options[3].why.empty());
}

TEST(SearchTest, NeverRecommendsWhatCannotBeDrivenWhereSomethingElseCan) {
  std::vector<Option> options{option_of("old", 10, 0, 24), option_of("new", 20, 0, 24)};
  options[0].drivable = false;
  EXPECT_EQ(find_best(options).fastest, 1);
  options[1].trial.fits = false;
  EXPECT_EQ(find_best(options).fastest, 0);
  options[0].trial.fits = false;
  EXPECT_EQ(find_best(options).fastest, -1);
}

}  // namespace
}  // namespace lockstep::forecast
