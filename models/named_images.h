// Pictures in one folder, and a table that tells the class of each by its file's name.
#pragma once

#include <filesystem>
#include <string>

#include <kolo/models/image_folder.h>

namespace kolo::models {

/// True for a folder with pictures in it and exactly one table (.csv, .tsv), for one whose folder `train` is
/// such a folder, and for one with train.csv beside pictures in `train`.
bool is_named_images(const std::filesystem::path& folder);
/// True if there is such a folder `test`, `val`, `valid` or `validation` beside `train`.
bool has_named_images_test(const std::filesystem::path& folder);

/// A split of such a folder. One column of the table holds the names of pictures, with or without their
/// ending; another one the classes: `target` by its name or number, else the
/// one called as read_csv has it, else the last one. left_out tells both, the other columns, and how many
/// pictures the table does not name. Throws InvalidArgumentError, with the line's number, for a picture that
/// is not there, named twice or without a class; where no column names pictures; and what InputFile throws.
ImageFolder list_named_images(const std::filesystem::path& folder, Split split, const std::string& target);

}  // namespace kolo::models
