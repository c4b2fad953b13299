// A text as samples: which of its pieces train, and which test.
#pragma once

#include <filesystem>

#include <kolo/models/data.h>
#include <kolo/models/data_splits.h>

namespace kolo::models::detail {

/// The last tenth is for testing. To be tested with is all of another text, unless it is what the
/// training had.
DataSplits text_samples_of_file(const std::filesystem::path& file, const DataRequest& request, Wanted wanted);

}  // namespace kolo::models::detail
