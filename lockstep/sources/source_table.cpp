// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/source_table.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/json.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/sources/source_affectnet.h"

namespace lockstep::sources {
namespace {

using base::Blame;
using base::Error;
using base::Path;
using base::text;

const std::vector<std::string> kPathColumns = {
    "path", "file", "filename", "filepath", "image", "imagepath", "imagename", "img", "subDirectory_filePath", "pth"};
const std::vector<std::string> kLabelColumns = {"label",    "class",  "classname", "expression", "emotion",
                                                "category", "target", "breed",     "y"};
const std::vector<std::string> kPartColumns = {"split", "part", "partition", "set", "subset", "usage"};
constexpr const char* kNoColumn = "none";
const std::vector<std::string> kRafDb = {"Surprise", "Fear", "Disgust", "Happiness", "Sadness", "Anger", "Neutral"};
constexpr const char* kRafDbList = "list_patition_label.txt";  // as its authors spell it
constexpr const char* kAffectNetLists = "Manually_Annotated_file_lists";
constexpr const char* kOtherTasks =
    "numbers to be learnt, or several classes of an image: --label-column none, then task regress or multilabel in the "
    "job (docs/formats/predictions.md)";
constexpr int64_t kRowsLookedAt = 100;  // to find the folder of the images: some may be gone
constexpr int64_t kMaxList = int64_t{4} << 30;

bool is_list_name(const std::string& name) {
  const std::string extension = extension_of(name);
  return extension == "csv" || extension == "tsv";
}

// SOURCE's lists: itself, or those of a folder whose names are names of parts.
std::vector<Path> lists_of(const Path& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  for (const char* below : {"", "EmoLabel", "basic/EmoLabel"}) {
    if (std::filesystem::exists(path / below / kRafDbList, error)) return {path / below / kRafDbList};
  }
  std::vector<Path> lists;
  for (const char* below : {"", kAffectNetLists}) {
    for (const auto& entry : std::filesystem::directory_iterator(path / below, error)) {
      const std::string name = entry.path().filename().string();
      if (is_list_name(name) && part_named(entry.path().stem().string()) != Part::open) lists.push_back(entry.path());
    }
  }
  std::sort(lists.begin(), lists.end());
  return lists;
}

bool all_digits(const std::string& word) {
  return !word.empty() && word.size() < 10 &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c); });
}

// A number only where nothing of the cell is lost by it: codes ("00123"), identities of 19 digits and "nan" stay text.
base::Json value_of(const std::string& cell) {
  constexpr size_t kExactLetters = 15;  // digits that a double holds
  double number = 0;
  const auto [end, code] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (code != std::errc() || end != cell.data() + cell.size()) return cell;
  const size_t first = cell.front() == '-' ? 1 : 0;
  const bool is_code =
      cell[first] == '0' && first + 1 < cell.size() && std::isdigit(static_cast<unsigned char>(cell[first + 1]));
  if (!std::isfinite(number) || cell.size() > kExactLetters || is_code) return cell;
  const bool whole = std::all_of(cell.begin() + static_cast<ptrdiff_t>(first), cell.end(),
                                 [](unsigned char c) { return std::isdigit(c); });
  if (whole && cell != "-0") return static_cast<int64_t>(number);
  return number;
}

struct Columns {
  int64_t path = -1;
  int64_t label = -1;  // -1: the samples have no classes, --label-column none
  int64_t part = -1;

  bool fit(const std::vector<std::string>& cells) const { return std::ssize(cells) > std::max({path, label, part}); }
};

Columns columns_of(const TextTable& table, const SourceOptions& options) {
  Columns all;
  const auto column = [&](const std::string& asked, const std::vector<std::string>& known) {
    return asked.empty() ? table.find_column(known) : table.named_column(asked);
  };
  all.path = column(options.path_column, kPathColumns);
  const bool has_classes = options.label_column != kNoColumn;
  if (has_classes) all.label = column(options.label_column, kLabelColumns);
  all.part = part_column_of(table, options);
  const std::vector<std::string> first = table.row(0);
  for (size_t i = 0; i < first.size() && all.path < 0; ++i) {
    if (has_image_name(first[i])) all.path = static_cast<int64_t>(i);
  }
  if (has_classes && all.path >= 0 && all.label < 0 && table.num_columns() == 2) all.label = 1 - all.path;
  if (all.path >= 0 && (all.label >= 0 || !has_classes)) return all;
  throw Error(Blame::user, text(table.source(), ": which column is the ", all.path < 0 ? "image" : "class", "?"),
              text("say it with --path-column and --label-column, by name or number; ",
                   table.header().empty() ? text(table.num_columns(), " columns") : base::join(table.header(), ", "),
                   all.path < 0 ? "" : text("; ", kOtherTasks)));
}

class TableSource final : public Source {
 public:
  explicit TableSource(const SourceOptions& options) {
    const std::vector<Path> lists = lists_of(options.path);
    if (lists.empty()) throw Error(Blame::user, text(options.path.string(), ": no list (.csv, .tsv) in it"));
    for (const auto& list : lists) {
      std::string content = base::read_file(list, kMaxList);
      note_list(content);
      tables_.emplace_back(std::move(content), list.string());
    }
    share_header();
    for (const auto& table : tables_) columns_.push_back(columns_of(table, options));
    is_raf_db_ = lists.front().filename() == kRafDbList;
    is_affect_net_ =
        tables_.front().find_column({"subDirectory_filePath"}) >= 0 && tables_.front().find_column({"expression"}) >= 0;
    tree_ = std::make_unique<FileTree>(find_images(options, lists.front(), first_images()));
    find_classes();
    note_other_tasks();
    if (options.format.empty() && options.label_column.empty()) refuse_captions();
    for (size_t list = 0; list < lists.size(); ++list) {
      const Part part = lists.size() > 1 ? part_named(lists[list].stem().string()) : Part::open;
      for (int64_t i = 0; i < tables_[list].size(); ++i) add_row(list, i, part);
    }
  }

  std::vector<SourceMember> load(int64_t i) const override {
    const auto [list, row] = rows_[static_cast<size_t>(i)];
    std::vector<SourceMember> members{{"", tree_->read(samples_[static_cast<size_t>(i)].name)}};
    const TextTable& table = tables_[list];
    const std::vector<std::string> cells = table.row(row);
    base::Json others = base::Json::object();
    for (size_t c = 0; c < cells.size(); ++c) {
      const auto column = static_cast<int64_t>(c);
      if (column == columns_[list].path || column == columns_[list].label || column == columns_[list].part) continue;
      others[c < table.header().size() ? table.header()[c] : text("column", c + 1)] = value_of(cells[c]);
    }
    if (others.size() == 0) return members;
    // Columns may be coordinates (AffectNet's are), and the image may be shrunk: they are of this size.
    const std::string& image = members.front().bytes;
    const image::ImageInfo info = image::read_image_info(std::as_bytes(std::span(image.data(), image.size())));
    if (!others.contains("width")) others["width"] = info.width;
    if (!others.contains("height")) others["height"] = info.height;
    members.push_back({"json", others.dump(-1)});
    return members;
  }

 private:
  struct RowAt {
    size_t list;
    int64_t row;
  };

  // Some lists of a collection come without the header of the others: the columns are the same.
  void share_header() {
    const auto first =
        std::find_if(tables_.begin(), tables_.end(), [](const auto& table) { return !table.header().empty(); });
    if (first == tables_.end()) return;
    for (auto& table : tables_) {
      if (table.header().empty() && table.num_columns() == first->num_columns()) table.borrow_header(first->header());
    }
  }

  std::vector<std::string> first_images() const {
    std::vector<std::string> names;
    const auto column = static_cast<size_t>(columns_.front().path);
    for (int64_t i = 0; i < tables_.front().size() && i < kRowsLookedAt; ++i) {
      const std::vector<std::string> cells = tables_.front().row(i);
      if (cells.size() > column) names.push_back(image_of(cells[column]));
    }
    if (names.empty()) throw Error(Blame::user, text(tables_.front().where(0), ": too few columns"));
    return names;
  }

  // An image and something else in each row, never the same: these are no classes.
  void refuse_captions() const {
    const TextTable& table = tables_.front();
    const bool is_bare = tables_.size() == 1 && table.header().empty() && table.num_columns() == 2;
    const bool is_number = std::all_of(classes_.begin(), classes_.end(), all_digits);
    if (!is_bare || is_number || table.size() < 3 || std::ssize(classes_) != table.size()) return;
    throw Error(Blame::user,
                text(table.source(), ": as many classes as rows, ", table.size(), ", the first is ",
                     base::quote_json(classes_.front())),
                "--format captions where these are captions; --format table where each image is a class");
  }

  // A column of ages or of "cat|dog" makes a class of each: right for nobody.
  void note_other_tasks() {
    for (const auto& name : classes_) {
      char* end = nullptr;
      std::strtod(name.c_str(), &end);
      const bool fraction = *end == '\0' && name.find('.') != std::string::npos;
      if (!fraction && name.find('|') == std::string::npos) continue;
      notes_.push_back(
          text("each different label is a class of its own, ", base::quote_json(name), " too; ", kOtherTasks));
      return;
    }
  }

  // RAF-DB's list names the images before they were aligned.
  std::string image_of(const std::string& cell) const {
    if (!is_raf_db_) return cell;
    return text("aligned/", cell.substr(0, cell.rfind('.')), "_aligned.jpg");
  }

  static std::string label_cell(const std::vector<std::string>& cells, const Columns& columns) {
    return columns.label < 0 || !columns.fit(cells) ? "" : cells[static_cast<size_t>(columns.label)];
  }

  void find_classes() {
    std::map<std::string, int32_t> found;
    bool numbers = true;
    for (size_t list = 0; list < tables_.size(); ++list) {
      for (int64_t i = 0; i < tables_[list].size(); ++i) {
        const std::string label = label_cell(tables_[list].row(i), columns_[list]);
        if (label.empty()) continue;
        found[label];
        numbers &= all_digits(label);
      }
    }
    if (is_affect_net_ || is_raf_db_) {
      classes_ = is_affect_net_ ? affectnet_classes() : kRafDb;
      for (size_t i = 0; i < classes_.size(); ++i)
        labels_[std::to_string(i + (is_raf_db_ ? 1 : 0))] = static_cast<int32_t>(i);
      return;
    }
    std::vector<std::string> names;
    names.reserve(found.size());
    for (const auto& [name, label] : found) names.push_back(name);
    if (numbers)
      std::stable_sort(names.begin(), names.end(),
                       [](const auto& a, const auto& b) { return std::stoll(a) < std::stoll(b); });
    for (const auto& name : names) {
      labels_[name] = static_cast<int32_t>(classes_.size());
      classes_.push_back(name);
    }
  }

  void add_row(size_t list, int64_t i, Part part) {
    const std::vector<std::string> cells = tables_[list].row(i);
    const Columns& columns = columns_[list];
    const std::string word = label_cell(cells, columns);
    if (!columns.fit(cells) || (columns.label >= 0 && word.empty())) {
      return refused_.push_back({tables_[list].where(i), "too few columns, or no label"});
    }
    const std::string name = image_of(cells[static_cast<size_t>(columns.path)]);
    int32_t label = shards::kNoLabel;
    if (columns.label >= 0) {
      const auto known = labels_.find(word);
      if (known == labels_.end()) return refused_.push_back({name, text("label ", word, " is none of the classes")});
      label = known->second;
    }
    if (columns.part >= 0) part = named_part(cells[static_cast<size_t>(columns.part)], tables_[list].where(i));
    if (is_raf_db_) part = cells[static_cast<size_t>(columns.path)].starts_with("test") ? Part::test : Part::train;
    try {
      samples_.push_back({name, label, part, tree_->size_of(name)});
      rows_.push_back({list, i});
    } catch (const Error& error) {
      if (error.blame() != Blame::user) throw;
      refused_.push_back({name, text(tables_[list].where(i), ": ", error.what())});
    }
  }

  std::vector<TextTable> tables_;
  std::vector<Columns> columns_;
  bool is_raf_db_ = false;
  bool is_affect_net_ = false;
  std::unique_ptr<FileTree> tree_;
  std::map<std::string, int32_t> labels_;
  std::vector<RowAt> rows_;
};

}  // namespace

bool has_label_column(const TextTable& table) {
  return table.find_column(kLabelColumns) >= 0;
}

int64_t path_column_of(const TextTable& table) {
  return table.find_column(kPathColumns);
}

int64_t part_column_of(const TextTable& table, const SourceOptions& options) {
  if (options.part_column == kNoColumn) return -1;
  return options.part_column.empty() ? table.find_column(kPartColumns) : table.named_column(options.part_column);
}

std::string part_word_of(const base::Json& entry, const std::string& where, const SourceOptions& options) {
  if (options.part_column == kNoColumn) return "";
  if (options.part_column.empty()) return entry.string_or("split", "");
  const base::Json* part = entry.find(options.part_column);
  if (part && part->is_string()) return part->as_string();
  throw Error(Blame::user, text(where, ": no part stands under '", options.part_column, "'"),
              "train, validate or test in every entry; or --split-column none, and prep splits by itself");
}

Path find_images(const SourceOptions& options, const Path& list, const std::vector<std::string>& first) {
  std::vector<Path> positions;
  if (!options.images.empty()) {
    positions = {options.images};
  } else {
    const Path beside = list.parent_path().empty() ? Path(".") : list.parent_path();
    for (const Path& at : {beside, beside / ".."}) {
      for (const char* below : {"", "images", "Images", "Image", "img", "data", "Manually_Annotated_Images",
                                "Manually_Annotated/Manually_Annotated_Images"}) {
        positions.push_back(at / below);
      }
    }
  }
  std::error_code error;
  std::erase_if(positions, [&](const Path& position) { return !std::filesystem::is_directory(position, error); });
  for (const auto& name : first) {
    for (const auto& position : positions) {
      if (FileTree(position).has_file(name)) return position;
    }
  }
  const std::string& name = first.front();
  if (name.find('\\') != std::string::npos) {
    throw Error(Blame::user,
                text(list.string(), ": the image ", base::quote_json(name),
                     " is not found: the list writes \\ between folders"),
                text("write /: sed 's|\\\\|/|g' ", base::shell_path(list.string()), " > NEW"));
  }
  if (!options.images.empty()) return options.images;  // perhaps only the first ones are missing
  if (text("/", name, "/").find("/../") != std::string::npos) {
    throw Error(Blame::user,
                text(list.string(), ": the image ", base::quote_json(name), ": ", kLeadsOut, " of the list"),
                kPathsFix);
  }
  throw Error(Blame::user,
              text(list.string(), ": the image ", base::quote_json(name), " is not found near the list",
                   first.size() > 1 ? text(", nor are ", first.size() - 1, " after it") : ""),
              "say where the images lie with --images DIR");
}

bool looks_like_table(const SourceOptions& options) {
  std::error_code error;
  if (std::filesystem::is_directory(options.path, error)) return !lists_of(options.path).empty();
  return is_list_name(options.path.string()) || options.path.filename() == kRafDbList;
}

std::unique_ptr<Source> open_table(const SourceOptions& options) {
  return std::make_unique<TableSource>(options);
}

}  // namespace lockstep::sources
