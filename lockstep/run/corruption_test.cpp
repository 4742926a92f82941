// SPDX-License-Identifier: Apache-2.0
// A thousand ways to damage a checkpoint, drawn from a seed: each must be noticed, and the one before it found.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>

#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/run/checkpoint.h"

namespace lockstep::run {
namespace {

using base::Path;
using base::Random;
using base::text;
using Files = std::map<std::string, std::string>;  // name -> content

Save small_save(int64_t step, const std::vector<float>& values) {
  const weights::TensorView tensor{
      "weight", weights::Dtype::F32, {static_cast<int64_t>(values.size())}, std::as_bytes(std::span(values))};
  Save save;
  save.step = step;
  save.keep = 3;
  save.state["seed"] = 7;
  for (const char* name : {"weights.safetensors", "optimizer.safetensors", "ema.safetensors"}) {
    save.parts.push_back(safetensors_part(name, {tensor}));
  }
  save.partitions = {"part-0001.safetensors"};
  save.token = text("t", step);
  return save;
}

// The part that another node wrote included.
Path save_small(CheckpointStore& store, int64_t step) {
  const std::vector<float> values(200, static_cast<float>(step));
  const Save save = small_save(step, values);
  store.write_partition(save.token, {save.partitions[0], save.parts[0].bytes, save.parts[0].write});
  return store.save(save);
}

Files read_folder(const Path& folder) {
  Files files;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    files[item.path().filename().string()] = base::read_file(item.path());
  }
  return files;
}

// Plain writes: no need to spend an fsync on damage.
void write_plainly(const Path& path, const std::string& content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  EXPECT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
  std::fclose(file);
}

size_t below(Random& random, size_t bound) {
  return static_cast<size_t>(random.uniform() * static_cast<double>(bound));
}

// Damages `now`, the files of one checkpoint, with the help of those of the one before; returns what was done.
std::string corrupt(Files& now, const Files& before, Random& random) {
  auto entry = now.begin();
  std::advance(entry, static_cast<int64_t>(below(random, now.size())));
  const auto& [name, good] = *entry;
  std::string bad = good;
  const size_t at = below(random, good.size());
  std::string what;
  switch (below(random, 8)) {
    case 0:
      bad[at] = static_cast<char>(bad[at] ^ (1 << below(random, 8)));
      what = text("bit flipped at ", at);
      break;
    case 1:
      bad.resize(at);
      what = text("cut to ", at);
      break;
    case 2:
      bad += std::string(1 + below(random, 600), static_cast<char>(below(random, 256)));
      what = text("grown to ", bad.size());
      break;
    case 3: {
      const size_t length = std::min(good.size() - at, size_t{1} + below(random, 512));
      for (size_t i = at; i < at + length; ++i) bad[i] = static_cast<char>(bad[i] ^ (1 + below(random, 255)));
      what = text(length, " bytes of rubbish at ", at);
      break;
    }
    case 4:
      now.erase(entry);
      return "a file is missing";
    case 5:
      now["manifest.json"] = before.at("manifest.json");
      return "the manifest of the checkpoint before";
    case 6:
      if (before.at(name) == good) return "";  // nothing is changed by that
      bad = before.at(name);
      what = "swapped with that of the checkpoint before";
      break;
    default:
      now = before;
      return "all files of the checkpoint before";
  }
  what = text(name, ": ", what);
  now[name] = bad;
  return what;
}

TEST(CheckpointCorruptionTest, AThousandAreAllNoticedAndTheOneBeforeIsFound) {
  const char* given = std::getenv("LOCKSTEP_TEST_SEED");
  const auto seed = given ? std::strtoull(given, nullptr, 10) : 1;
  std::printf("LOCKSTEP_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  Random random(seed, 0, 0);
  const base::TemporaryFolder temporary;
  CheckpointStore store(temporary.path());
  const Path first = save_small(store, 1);
  const Path second = save_small(store, 2);
  const Files before = read_folder(first), good = read_folder(second);
  int64_t damaged = 0;
  while (damaged < 1000) {
    Files now = good;
    const std::string what = corrupt(now, before, random);
    if (what.empty()) continue;
    ++damaged;
    std::filesystem::remove_all(second);
    std::filesystem::create_directory(second);
    for (const auto& [name, content] : now) write_plainly(second / name, content);
    ASSERT_NE(damage(second), "") << what << ", seed " << seed;
    const Found found = store.newest();
    ASSERT_TRUE(found.checkpoint) << what;
    ASSERT_EQ(found.checkpoint->step, 1) << what;
    ASSERT_EQ(found.passed_over.size(), 1U) << what;
  }
  std::filesystem::remove_all(second);
  std::filesystem::create_directory(second);
  for (const auto& [name, content] : good) write_plainly(second / name, content);
  EXPECT_EQ(damage(second), "");  // the harness itself breaks nothing
}

}  // namespace
}  // namespace lockstep::run
