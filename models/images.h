// Labelled images: where kolo-train gets them from.
#pragma once

#include <optional>
#include <string>

#include <kolo/models/dataset.h>

namespace kolo::models {

/// The images that `--data` names, told by the files in that folder: CIFAR-10 (cifar10.h), else digits
/// (digits.h). Nothing if the test split is asked for and its files are absent. Throws what those throw.
std::optional<Dataset> load_images(const std::optional<std::string>& data, Split split);

}  // namespace kolo::models
