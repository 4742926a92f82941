// SPDX-License-Identifier: Apache-2.0
// Our side of tests/oracles/scores.py: numbers in pairs (a score, 0 or 1) on standard input, a case a line; the average
// precision of each on standard output.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "lockstep/task/multilabel.h"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::vector<lockstep::task::Ranked> all;
    for (lockstep::task::Ranked one; words >> one.score >> one.is_positive;) all.push_back(one);
    std::printf("%.17g\n", lockstep::task::average_precision(all));
  }
  return 0;
}
