// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/base/json.h"
#include "lockstep/sources/source.h"
#include "lockstep/sources/text_table.h"

namespace lockstep::sources {

// A CSV, TSV or blank-separated list: a column of paths, a column of labels (names or numbers), perhaps one of parts;
// further columns go into each sample's .json. A folder with training.csv and validation.csv (AffectNet) has parts of
// its own, and so has list_patition_label.txt (RAF-DB; its images are Image/aligned/*_aligned.jpg).
bool looks_like_table(const SourceOptions& options);
std::unique_ptr<Source> open_table(const SourceOptions& options);

// The folder below which the images of a list lie: `options.images`, or the first of the customary places near the list
// where one of `first`, the first images of the list, is. User error that tells what was looked for.
base::Path find_images(const SourceOptions& options, const base::Path& list, const std::vector<std::string>& first);

// Where the paths of a list lead out of the folder of its images.
constexpr const char* kPathsFix =
    "write the paths relative to one folder that holds all images, without \"..\"; or absolute, with --images /";

bool has_label_column(const TextTable& table);   // by its name
int64_t path_column_of(const TextTable& table);  // of the images' paths, by its name; -1 for none
// The column that tells the part, -1 for none. User error for a name that the table has not.
int64_t part_column_of(const TextTable& table, const SourceOptions& options);
// The same of an entry of JSON: the word that tells its part, empty for none. User error that names `where` for an
// entry without the key that was asked for.
std::string part_word_of(const base::Json& entry, const std::string& where, const SourceOptions& options);

}  // namespace lockstep::sources
