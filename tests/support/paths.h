// Where this checkout and its build are. Known to one object alone: on every command line of the compiler
// they would keep the objects of one checkout from serving another out of ccache.
#pragma once

#include <string>

namespace kolo {

/// `path` is below the root of the sources: "docs/sessions.md".
std::string source_path(const std::string& path);
/// Of this build: "kolorun".
std::string program_path(const std::string& name);

}  // namespace kolo
