// Folders of photographs, a folder for each class: train/CLASS/x.jpg.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <kolo/models/folder_contents.h>
#include <kolo/models/samples.h>

namespace kolo::models {

/// A split of a folder: its class folders stand in `train` and in `test`, or else in `val`, `valid` or
/// `validation`; where there is no `train` they stand in the folder itself, and there is no test split.
struct ImageFolder {
  std::string name;                  // of the folder, for outputs
  std::vector<std::string> classes;  // names of the training split's folders, sorted
  std::vector<std::filesystem::path>
      files;                         // .png .jpg .jpeg, sorted within their class, in folders below it too
  std::vector<std::int32_t> labels;  // of each file, a place in `classes`
  std::string left_out;              // what else lies there: "left out: 180 .webp, 18 broken links"
};

/// True if train/ or the folder itself has a folder with a PNG or JPEG (told by the names) in it.
bool is_image_folder(const std::filesystem::path& folder);
/// True if there is a folder for testing beside `train`.
bool has_image_folder_test(const std::filesystem::path& folder);

/// Pictures of the folder, sorted by their bytes, and behind them those of the folders in it, as
/// torchvision's ImageFolder finds them. Adds what else lies there to `left_out`. Throws UnavailableError for
/// a folder that cannot be read.
std::vector<std::filesystem::path> images_below(const std::filesystem::path& folder, LeftOut& left_out);

/// What is there; no file is opened. Pictures may lie in folders below that of their class. Hidden folders
/// and files do not count; files of other names, links that lead nowhere, pictures beside the classes'
/// folders and folders that are of neither split are told in left_out. Throws NotFoundError for a split that
/// is absent, InvalidArgumentError for a training class without images and for a test class that training has
/// not.
ImageFolder list_image_folder(const std::filesystem::path& folder, Split split);

/// Its images, decoded when they are asked for and brought to [C,H,W] (resize_and_crop, read_image, whose
/// errors end the reading), C 1 or 3; each worth several threads. Throws InvalidArgumentError for another C.
std::shared_ptr<const SampleSet> folder_samples(ImageFolder folder, const Shape& shape,
                                                const Augmentation& augmentation = {});

}  // namespace kolo::models
