// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// The eight emotions, by AffectNet's numbers.
const std::vector<std::string>& affectnet_classes();

// AffectNet as it is handed out since 2021: {train_set,val_set}/images/N.jpg with annotations/N_exp.npy (the emotion),
// N_val.npy, N_aro.npy (valence and arousal, into the sample's json) and N_lnd.npy (landmarks, as they are).
bool looks_like_affectnet(const SourceOptions& options);
std::unique_ptr<Source> open_affectnet(const SourceOptions& options);

}  // namespace lockstep::sources
