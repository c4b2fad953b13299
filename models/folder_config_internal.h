// The text of config.json, for those who hand it to other ranks or write it anew.
#pragma once

#include <string>

#include <kolo/models/folder_config.h>

namespace kolo::models::detail {

std::string folder_config_path(const std::string& folder);
/// "" where there is none.
std::string folder_config_text(const std::string& folder);

}  // namespace kolo::models::detail
