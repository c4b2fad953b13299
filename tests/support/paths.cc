#include "tests/support/paths.h"

namespace kolo {

std::string source_path(const std::string& path) { return KOLO_SOURCE_DIR "/" + path; }

std::string program_path(const std::string& name) { return KOLO_BIN_DIR "/" + name; }

}  // namespace kolo
