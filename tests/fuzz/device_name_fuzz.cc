// Device names: whatever is read prints as a name that reads the same, and nothing else than a kolo::Error
// comes from a scope.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/device/device_name.h>
#include <kolo/core/graph/scope.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  if (const auto spec = kolo::parse_device_spec(text))
    if (kolo::parse_device_spec(spec->to_string()) != spec) std::abort();
  kolo::Graph graph;
  try {
    kolo::Scope(graph).device(text).add("NoOp", {});
  } catch (const kolo::Error&) {
  }
  return 0;
}
