// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

namespace lockstep::task {

using Words = std::vector<std::string>;

// A caption that was made for an image, and those that people wrote.
struct CaptionPair {
  Words made;
  std::vector<Words> references;  // one at least
};

struct CaptionFigures {
  std::array<double, 4> bleu = {};  // 1 to 4
  double rouge_l = 0;
  double cider = 0;  // CIDEr-D, 0 to 10
};

// As pycocoevalcap computes them, on whole collections: BLEU from sums over all captions (Papineni et al. 2002; the
// closest reference's length, of equals the shorter), ROUGE-L with beta 1.2 and precision and recall maximal over
// references each (Lin 2004), CIDEr-D with document frequencies of these references (Vedantam et al. 2015).
CaptionFigures caption_figures(const std::vector<CaptionPair>& pairs);

double rouge_l(const CaptionPair& pair);

}  // namespace lockstep::task
