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

const std::vector<BlockSaving> kOrder{{"late", 4, 1}, {"early", 3, 1}, {"stem", 2, 1}, {"head", 1, 1}};

TEST(SearchTest, KeepsTheJobAsWrittenWhenItFitsAndNothingIsFaster) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, kFp32Only, kOrder, trial_below(256, 300));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->levers, written);
  EXPECT_TRUE(list_changes(written, found->levers).empty());
}

TEST(SearchTest, HalvesThePassUntilItFits) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, kFp32Only, kOrder, trial_below(256, 70));
  ASSERT_TRUE(found);
  EXPECT_EQ(list_changes(written, found->levers), std::vector<std::string>{"training.micro_batch=64"});
}

TEST(SearchTest, GivesUpSavingMemoryWhereThereIsEnough) {
  const Levers written{.precision = "fp32", .recompute = {"all"}, .micro_batch = 8};
  const auto found = search(written, 256, kFp32Only, kOrder, trial_below(256, 128));
  ASSERT_TRUE(found);
  EXPECT_EQ(list_changes(written, found->levers),
            (std::vector<std::string>{"training.micro_batch=128", "training.recompute=[]"}));
}

TEST(SearchTest, RecomputesWhereNotEvenASmallPassFits) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, kFp32Only, kOrder, trial_below(256, 0.5));
  ASSERT_TRUE(found);
  EXPECT_EQ(list_changes(written, found->levers),
            (std::vector<std::string>{"training.micro_batch=2", "training.recompute=[\"all\"]"}));
  EXPECT_FALSE(search(written, 256, kFp32Only, {}, trial_below(256, 0.1)));
  EXPECT_FALSE(search(written, 256, {.precisions = {"fp32"}}, {}, trial_below(256, 0.5)));
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
    const auto found = search(written, 64, reach, kOrder, trial_from_level(64, least));
    ASSERT_TRUE(found);
    EXPECT_EQ(list_changes(written, found->levers),
              (std::vector<std::string>{"training.zero=" + std::to_string(least)}));
  }
  EXPECT_FALSE(search(written, 64, {.precisions = {"fp32"}, .zero = 2}, {}, trial_from_level(64, 3)));
  EXPECT_FALSE(search(written, 64, {.precisions = {"fp32"}}, {}, trial_from_level(64, 1)));
}

TEST(SearchTest, CutsNothingWhereAPassOfSomeSizeFitsWhole) {
  const Levers written{.precision = "fp32"};
  const Reach reach{.precisions = {"fp32"}, .recompute = true, .zero = 3};
  EXPECT_EQ(search(written, 256, reach, kOrder, trial_below(256, 70))->levers.zero, 0);
}

TEST(SearchTest, TakesFewerBitsWhereTheyAreFaster) {
  const Levers written{.precision = "fp32", .recompute = {}, .micro_batch = 0};
  const auto found = search(written, 256, {.precisions = {"fp32", "bf16"}}, {}, trial_below(256, 300));
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

TEST(SearchTest, RanksBlocksByBytesSavedPerSecondOfRecomputation) {
  const auto savings = block_savings(invented_step({.precision = "fp32", .micro_batch = 4}));
  ASSERT_EQ(savings.size(), 2U);
  EXPECT_EQ(savings[0].bytes, 40e6);  // a sample's
  EXPECT_EQ(savings[1].bytes, 20e6);
  EXPECT_GT(savings[0].seconds, 0);
  EXPECT_EQ(recompute_order(savings)[0].block, "early");
  const auto order = recompute_order({{"costly", 10, 5}, {"cheap", 10, 1}, {"nothing", 0, 1}});
  ASSERT_EQ(order.size(), 2U);
  EXPECT_EQ(order[0].block, "cheap");
}

TEST(SearchTest, RecomputesAsManyBlocksAsBytesAreMissing) {
  EXPECT_EQ(enough_blocks(kOrder, 30, 10), std::vector<std::string>{"late"});
  EXPECT_EQ(enough_blocks(kOrder, 60, 10), (std::vector<std::string>{"late", "early"}));
  EXPECT_EQ(enough_blocks(kOrder, 100, 10).size(), 4U);
  EXPECT_TRUE(enough_blocks(kOrder, 101, 10).empty());
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
