// Folders of pictures as samples: which pictures train, and which test.
#pragma once

#include <filesystem>

#include <kolo/models/data.h>
#include <kolo/models/data_splits.h>

namespace kolo::models::detail {

/// Of a folder with a table of the pictures' labels (is_named_images).
DataSplits named_pictures(const std::filesystem::path& folder, const DataRequest& request, Wanted wanted);

/// Of a folder with a folder for each class (is_image_folder).
DataSplits classed_pictures(const std::filesystem::path& folder, const DataRequest& request, Wanted wanted);

}  // namespace kolo::models::detail
