// What kolo's programs have written themselves, and may lie among the data: it is no part of them.
#pragma once

#include <filesystem>

namespace kolo::models::detail {

/// A file of a checkpoint folder or a log, by its name, and by those beside it where others may have it, too.
bool is_own_file(const std::filesystem::path& file);

/// A folder of such files, in which no picture lies. Hidden files do not count.
bool is_own_folder(const std::filesystem::path& folder);

/// A table that --predict has written, by its first two lines: `name,class,share`, or other columns of
/// numbers, below it names of lines, of arrays' elements or of pictures. A table of pictures' scores may look
/// alike, so that a folder's only table is never one.
bool are_predictions(const std::filesystem::path& table);

/// Whether a file to which predictions are to go holds some, or nothing beside their names: a table, or for
/// .jsonl a line with a name.
bool may_be_replaced(const std::filesystem::path& file);

}  // namespace kolo::models::detail
