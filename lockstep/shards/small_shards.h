// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/shards/shard_set.h"
#include "lockstep/shards/shard_writer.h"

namespace lockstep::shards {

// For tests: five images in two shards, labels 0 1 0 1 0.
struct SmallShards {
  base::TemporaryFolder folder;
  std::vector<std::string> images;

  SmallShards() {
    for (int i = 0; i < 5; ++i) {
      image::Image image(20 + i, 24);
      base::Random random(3, 0, static_cast<uint64_t>(i));
      for (auto& value : image.pixels) value = static_cast<uint8_t>(random.bits());
      images.push_back(image::encode_jpeg(image, 90));
    }
    write_all();
  }

  void write_all() const {
    write_shard_list(folder.path(),
                     {"tiny train", {"cat", "dog"}, {write("shard-000000", 0, 3), write("shard-000001", 3, 5)}});
  }

 private:
  ShardSummary write(const std::string& name, int begin, int end) const {
    ShardWriter writer(folder.path(), name);
    for (int i = begin; i < end; ++i) {
      const std::string label = std::to_string(i % 2);
      writer.add({base::text("0000", i, "-pet"), i % 2, 100u + static_cast<unsigned>(i)},
                 {{"jpg", images[static_cast<size_t>(i)]}, {"cls", label}});
    }
    return writer.finish();
  }
};

}  // namespace lockstep::shards
