# Run by the build: writes OUT, a header with the id of this build. It is made of what decides whether classes of
# one build are those of another: core's headers and SETTINGS. A file with the same id is left as it is.
file(GLOB_RECURSE headers RELATIVE ${ROOT} ${ROOT}/core/*.h)
list(SORT headers)
set(digests "${SETTINGS}")
foreach(header IN LISTS headers)
  file(SHA256 ${ROOT}/${header} digest)
  string(APPEND digests "${header}${digest}")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 20 digest)
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT
"// Made by the build: see cmake/kolo_build_id.cmake.
#pragma once

namespace kolo {
inline constexpr char kBuildId[] = \"${digest}\";
}  // namespace kolo
")
