// SPDX-License-Identifier: Apache-2.0
#include "lockstep/sources/pack/drawn_set.h"

#include "lockstep/base/clock.h"
#include "lockstep/sources/pack/folder_lock.h"
#include "lockstep/sources/pack/folder_state.h"

namespace lockstep::sources {

std::optional<Dataset> complete_set(Dataset dataset, const base::Json& description) {
  if (!is_complete(dataset.folder, description)) return std::nullopt;
  remove_work(dataset.folder);
  const base::Json file = base::read_json(dataset.folder / kDatasetComplete);
  dataset.num_train = file.int_or("train", dataset.num_train);
  dataset.num_validate = file.int_or("validate", dataset.num_validate);
  dataset.fingerprint = file.at("fingerprint").as_string();
  dataset.was_complete = true;
  return dataset;
}

Dataset write_set(Dataset dataset, base::Json description, const DrawSet& draw) {
  const double start = base::steady_seconds();
  const FolderLock lock(dataset.folder);
  mark_begun(dataset.folder, description);
  remove_litter(dataset.folder);
  draw(dataset, description);
  sync_file_system(dataset.folder);
  description["fingerprint"] = dataset.fingerprint;
  base::write_json(dataset.folder / kDatasetComplete, description);
  remove_work(dataset.folder);
  dataset.seconds = base::steady_seconds() - start;
  return dataset;
}

}  // namespace lockstep::sources
