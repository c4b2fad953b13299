# Run by every build: writes OUT, a header with the commit of the sources, "" outside a checkout. A header that says the
# same already is left as it is.
execute_process(COMMAND git -C ${ROOT} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"// Made by the build: see cmake/kolo_commit.cmake.
#pragma once

namespace kolo {
inline constexpr char kCommit[] = \"${commit}\";
}  // namespace kolo
")
