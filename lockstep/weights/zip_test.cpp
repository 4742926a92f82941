// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/zip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/file.h"

namespace lockstep::weights {
namespace {

// Written by torch.save: zip64, entries aligned with padding in their extra fields.
std::string torch_archive() {
  return base::read_file("tests/fuzz/corpus/pth/zip.pth");
}

std::string zip_complaint(const std::string& content) {
  try {
    read_stored_zip(std::as_bytes(std::span(content.data(), content.size())), "a.zip");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "accepted";
}

// Offset of field `field` of the n-th record that starts with `signature`.
size_t field_of(const std::string& archive, const char* signature, size_t field) {
  const size_t at = archive.find(signature);
  EXPECT_NE(at, std::string::npos);
  return at + field;
}

TEST(ZipTest, ListsAnArchiveOfPyTorch) {
  const std::string archive = torch_archive();
  std::vector<std::string> names;
  for (const ZipEntry& entry : read_stored_zip(std::as_bytes(std::span(archive.data(), archive.size())), "a.zip")) {
    names.push_back(entry.name);
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"zip/data.pkl", "zip/data/0", "zip/version"}));
}

TEST(ZipTest, RefusesWhatPyTorchDoesNotWrite) {
  std::string compressed = torch_archive();
  compressed[field_of(compressed, "PK\1\2", 10)] = 8;
  EXPECT_THAT(zip_complaint(compressed), testing::HasSubstr("is compressed"));
  std::string encrypted = torch_archive();
  encrypted[field_of(encrypted, "PK\1\2", 8)] |= 1;
  EXPECT_THAT(zip_complaint(encrypted), testing::HasSubstr("is encrypted"));
  std::string moved = torch_archive();
  moved[field_of(moved, "PK\1\2", 42)] = 1;
  EXPECT_THAT(zip_complaint(moved), testing::HasSubstr("not where it should be"));
  EXPECT_THAT(zip_complaint("PK\3\4 no directory"), testing::HasSubstr("directory at its end is missing"));
}

TEST(ZipTest, RejectsEveryTruncation) {
  const std::string whole = torch_archive();
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_NE(zip_complaint(whole.substr(0, size)), "accepted") << size;
}

TEST(ZipTest, NoDamagedByteLeadsOutsideTheFile) {
  const std::string whole = torch_archive();
  for (size_t at = whole.find("PK\1\2"); at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(~damaged[at]);
    const auto bytes = std::as_bytes(std::span(damaged.data(), damaged.size()));
    try {
      for (const ZipEntry& entry : read_stored_zip(bytes, "damaged")) {
        EXPECT_TRUE(entry.bytes.empty() || (entry.bytes.data() >= bytes.data() &&
                                            entry.bytes.data() + entry.bytes.size() <= bytes.data() + bytes.size()));
      }
    } catch (const base::Error& error) {
      EXPECT_EQ(error.blame(), base::Blame::user);
    }
  }
}

}  // namespace
}  // namespace lockstep::weights
