// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::task {

// What the classes of an image say of each other: "no bicycle beside Saint George". A weight for a pair of classes says
// how much likelier they are on one image than by chance: 1 says nothing, 0.1 makes each unlikely beside the other.
// A detection's log-odds get strength * q * log(weight) of every other class on the image, q being the highest score of
// that class; so it is the unsure ones that give way.
class Context {
 public:
  // Lines "class,class,weight" in either order; names may be quoted; pairs that are not named weigh 1; a first line
  // without a number is a header. User error that names file and line: no number above 0, a class that is unknown.
  Context(std::string_view csv, const std::string& source, const std::vector<std::string>& classes, double strength);

  struct Answer {
    int32_t label = 0;
    float score = 0;
  };
  // The scores of the detections of an image, which do not depend on their order.
  std::vector<float> scores(const std::vector<Answer>& answers) const;

 private:
  size_t num_classes_;
  std::vector<double> logarithms_;  // strength * log(weight), [class, class]
};

}  // namespace lockstep::task
