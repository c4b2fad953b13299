// Labels of test samples, or of later ones, that the training has not.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kolo/core/tensor/tensor.h>

namespace kolo::models::detail {

/// Of one file, or of all of its samples together.
struct UnknownLabels {
  std::string file, trained = {};              // their names; trained "": nobody knows the training's
  std::map<std::string, std::int64_t> counts;  // how many samples have which unknown label
  std::vector<std::string> classes;            // of the training
  std::vector<std::string> others = {};        // labels of the file that the training has
  const char* what = "class";                  // "label": of several
};

/// `is none of the 3 classes, 0, 1, 2, of train.csv; test.csv has 10 samples of 3`, and what would be right:
/// both are counted alike where one counts from 0 and the other from 1.
std::string unknown_labels_text(const UnknownLabels& unknown);

/// y: i32 [N], classes 0 … classes − 1 of the training. Throws InvalidArgumentError, with the path in front,
/// for others.
void check_known_labels(const Tensor& y, std::int64_t classes, const std::string& path,
                        const std::string& trained);

}  // namespace kolo::models::detail
