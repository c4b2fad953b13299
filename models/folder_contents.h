// What lies in a folder, and what of it nobody takes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <kolo/models/data.h>

namespace kolo::models::detail {

/// The kind of links from which all would be read again and again.
inline constexpr char kLinksUp[] = "links that lead back up";

/// "180 .heic", "1 picture in no folder of a class": of a kind whose name is that of several.
std::string count_of_kind(std::int64_t count, const std::string& kind);

/// "flowers": of the folder or file, however its path is written.
std::string last_name(const std::filesystem::path& path);

/// ".heic", "files without an ending", "tables of predictions".
std::string kind_of_file(const std::filesystem::path& path);

/// Adds what lies in the folder and is not among the names: files by their endings, and the name of each
/// folder. Hidden ones do not count.
void add_left_out(const std::filesystem::path& folder, const std::vector<std::string>& taken,
                  LeftOut& left_out);
/// The same as left_out_text.
std::string left_out_beside(const std::filesystem::path& folder, const std::vector<std::string>& taken);

/// The most frequent kinds first, at most four: `8 .jpg, 2 folders`; "nothing".
std::string contents_of(const std::filesystem::path& folder);

/// A folder in which nothing lies, at any depth, but files whose names begin with a point, and at least one;
/// or
/// __MACOSX, which archives made on a Mac bring along. It is no class, and no part of the data.
bool is_hidden_folder(const std::filesystem::path& folder);

/// Names of the files in a folder that are not hidden, sorted.
std::vector<std::string> files_in(const std::filesystem::path& folder);

}  // namespace kolo::models::detail
