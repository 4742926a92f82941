// SPDX-License-Identifier: Apache-2.0
#include "lockstep/weights/pth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "lockstep/base/error.h"

namespace lockstep::weights {
namespace {

using std::string_literals::operator""s;

template <class Integer>
std::string raw(Integer value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string word(const std::string& value) {
  return "X" + raw(static_cast<uint32_t>(value.size())) + value;
}

std::string whole(int32_t value) {
  return "J" + raw(value);
}

struct Stored {
  std::string name;
  std::string content;
};

// A zip archive as torch.save writes it, without the zip64 records.
std::string stored_zip(const std::vector<Stored>& files) {
  std::string body;
  std::string directory;
  for (const Stored& file : files) {
    const auto size = static_cast<uint32_t>(file.content.size());
    const auto name = static_cast<uint16_t>(file.name.size());
    const std::string rest = raw<uint16_t>(0) + raw<uint16_t>(0) + raw<uint32_t>(0) + raw<uint32_t>(0) + raw(size) +
                             raw(size) + raw(name) + raw<uint16_t>(0);
    directory += "PK\1\2"s + raw<uint32_t>(20) + rest + raw<uint16_t>(0) + raw<uint32_t>(0) + raw<uint32_t>(0) +
                 raw(static_cast<uint32_t>(body.size())) + file.name;
    body += "PK\3\4"s + raw<uint16_t>(20) + rest + file.name + file.content;
  }
  const auto count = static_cast<uint16_t>(files.size());
  return body + directory + "PK\5\6"s + raw<uint32_t>(0) + raw(count) + raw(count) +
         raw(static_cast<uint32_t>(directory.size())) + raw(static_cast<uint32_t>(body.size())) + raw<uint16_t>(0);
}

struct Described {  // the arguments of torch._utils._rebuild_tensor_v2
  std::string key = "0";
  int32_t elements = 6;
  int32_t offset = 0;
  std::vector<int32_t> shape = {2, 3};
  std::vector<int32_t> strides = {3, 1};
};

std::string numbers(const std::vector<int32_t>& values) {
  std::string tuple = "(";
  for (const int32_t value : values) tuple += whole(value);
  return tuple + "t";
}

std::string tensor(const Described& tensor) {
  return "ctorch._utils\n_rebuild_tensor_v2\n((" + word("storage") + "ctorch\nFloatStorage\n" + word(tensor.key) +
         word("cpu") + whole(tensor.elements) + "tQ" + whole(tensor.offset) + numbers(tensor.shape) +
         numbers(tensor.strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}

std::string dictionary(const std::string& members) {
  return "\x80\x02}(" + members + "u";
}

std::string six_floats() {
  const float values[] = {0, 1, 2, 3, 4, 5};
  return {reinterpret_cast<const char*>(values), sizeof values};
}

std::string archive(const std::string& pickle) {
  return stored_zip({{"archive/data.pkl", pickle}, {"archive/byteorder", "little"}, {"archive/data/0", six_floats()}});
}

PthTensors parse(const std::string& content) {
  return parse_pth(std::as_bytes(std::span(content.data(), content.size())), "w.pth");
}

std::string complaint(const std::string& content) {
  try {
    parse(content);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.blame(), base::Blame::user);
    return error.what();
  }
  return "accepted";
}

std::vector<float> floats(const TensorView& view) {
  std::vector<float> values(view.bytes.size() / sizeof(float));
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

TEST(PthTest, ReadsAStateDict) {
  const std::string content = archive(dictionary(word("a.weight") + tensor({}) + word("epoch") + whole(3)) + ".");
  const PthTensors read = parse(content);
  ASSERT_EQ(read.tensors.size(), 1U);
  EXPECT_EQ(read.tensors[0].name, "a.weight");
  EXPECT_EQ(read.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(floats(read.tensors[0]), testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(PthTest, ReadsAStateDictOneLevelDown) {
  const std::string inner = "}(" + word("w") + tensor({}) + "u";
  EXPECT_EQ(parse(archive(dictionary(word("state_dict") + inner) + ".")).tensors.size(), 1U);
  EXPECT_EQ(parse(archive(dictionary(word("model") + inner) + ".")).tensors.size(), 1U);
}

TEST(PthTest, GathersATransposedTensor) {
  const std::string pickle = dictionary(word("t") + tensor({.shape = {3, 2}, .strides = {1, 3}}) + word("row") +
                                        tensor({.offset = 3, .shape = {3}, .strides = {1}}));
  const std::string content = archive(pickle + ".");
  const PthTensors read = parse(content);
  EXPECT_THAT(floats(read.tensors[0]), testing::ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(floats(read.tensors[1]), testing::ElementsAre(3, 4, 5));
}

TEST(PthTest, RefusesToRunAnythingAndSaysWhat) {
  EXPECT_THAT(complaint(archive("\x80\x02"
                                "cposix\nsystem\n(" +
                                word("echo hacked") + "tR.")),
              testing::HasSubstr("refused: the file asks to run posix.system"));
  EXPECT_THAT(complaint(archive("\x80\x04" + "\x8c\x08"
                                             "builtins\x8c\x04"
                                             "eval\x93)R."s)),
              testing::HasSubstr("refused: the file asks to run builtins.eval"));
  EXPECT_THAT(complaint(archive("\x80\x02"
                                "ctorch\nload\n)R.")),
              testing::HasSubstr("run torch.load"));
  EXPECT_THAT(complaint(archive("\x80\x02"
                                "i__builtin__\nexec\n.")),
              testing::HasSubstr("opcode 105"));
}

TEST(PthTest, RefusesDescriptionsThatDoNotFitTheFile) {
  const auto of = [](const Described& described) {
    return complaint(archive(dictionary(word("w") + tensor(described)) + "."));
  };
  EXPECT_EQ(of({}), "accepted");
  EXPECT_THAT(of({.offset = 1}), testing::HasSubstr("beyond its storage"));
  EXPECT_THAT(of({.strides = {4, 1}}), testing::HasSubstr("beyond its storage"));
  EXPECT_THAT(of({.shape = {1 << 30, 1 << 30}}), testing::HasSubstr("larger than its storage"));
  EXPECT_THAT(of({.shape = {1 << 20, 3}, .strides = {0, 1}}), testing::HasSubstr("larger than its storage"));
  EXPECT_THAT(of({.elements = 7}), testing::HasSubstr("larger storage than the file has"));
  EXPECT_THAT(of({.offset = -1}), testing::HasSubstr("described wrongly"));
  EXPECT_THAT(of({.shape = {-2, -3}}), testing::HasSubstr("no proper shape"));
  EXPECT_THAT(of({.shape = {6}}), testing::HasSubstr("no proper shape"));
  EXPECT_THAT(of({.key = "7"}), testing::HasSubstr("no bytes in the file"));
}

// Each level holds the one before ten times: as a tree it would have 10^30 leaves.
TEST(PthTest, ManyLaughsCostNothing) {
  std::string pickle = "\x80\x02}(" + word("laughs") + "]q"s + '\0';
  for (char level = 1; level <= 30; ++level) {
    pickle += "](";
    for (int i = 0; i < 10; ++i) pickle += "h"s + static_cast<char>(level - 1);
    pickle += "eq"s + level;
  }
  EXPECT_THAT(complaint(archive(pickle + "u.")), testing::HasSubstr("no named tensors"));
  EXPECT_THAT(complaint(archive("\x80\x02" + std::string(3'000'000, ']') + ".")),
              testing::HasSubstr("more than 2000000 values"));
  EXPECT_THAT(complaint(archive("\x80\x02" + std::string(5'000'000, '(') + ".")), testing::HasSubstr("without end"));
}

TEST(PthTest, RefusesArchivesThatAreNotTensors) {
  EXPECT_THAT(complaint(stored_zip({{"a/code.py", "x"}})), testing::HasSubstr("no data.pkl"));
  EXPECT_THAT(complaint(stored_zip({{"a/data.pkl", "."}, {"a/byteorder", "big"}})),
              testing::HasSubstr("little-endian"));
}

TEST(PthTest, RejectsEveryTruncation) {
  const std::string content = archive(dictionary(word("w") + tensor({})) + ".");
  for (size_t size = 0; size < content.size(); ++size) {
    EXPECT_NE(complaint(content.substr(0, size)), "accepted") << size;
  }
}

std::string plain_checkpoint(const std::string& pickle) {
  const std::string magic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s;
  const std::string version = "\x80\x02M\xe9\x03."s;
  const std::string writer = "\x80\x02}(" + word("little_endian") + "\x88u.";
  return magic + version + writer + pickle + "\x80\x02](" + word("0") + "e." + raw<int64_t>(6) + six_floats();
}

TEST(PthTest, ReadsTheFormatBeforePyTorch16) {
  const std::string content = plain_checkpoint(dictionary(word("w") + tensor({})) + ".");
  EXPECT_THAT(floats(parse(content).tensors.at(0)), testing::ElementsAre(0, 1, 2, 3, 4, 5));
  for (size_t size = 15; size < content.size(); ++size) {
    EXPECT_NE(complaint(content.substr(0, size)), "accepted") << size;
  }
  EXPECT_THAT(complaint(plain_checkpoint("\x80\x02"
                                         "cos\nsystem\n)R.")),
              testing::HasSubstr("run os.system"));
}

}  // namespace
}  // namespace lockstep::weights
