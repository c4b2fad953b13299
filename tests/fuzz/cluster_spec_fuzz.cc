// A cluster in each of its forms: what is read has a JSON text, a wire form and addresses that read the same,
// and nothing else than a kolo::Error comes out.
#include <cstdint>
#include <string_view>

#include <kolo/core/base/error.h>
#include <kolo/core/cluster/cluster_spec.h>
#include <kolo/core/cluster/task_address.h>

#include "tests/fuzz/fuzz_file.h"

namespace {

using kolo::ClusterSpec;

void try_form(ClusterSpec (*read)(std::string_view), std::string_view text) {
  try {
    const ClusterSpec spec = read(text);
    kolo::require(ClusterSpec::from_wire_form(spec.wire_form()) == spec);
    if (read != ClusterSpec::from_json) return;  // an address from elsewhere need not be UTF-8
    kolo::require(ClusterSpec::from_json(spec.to_json()) == spec);
  } catch (const kolo::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  try_form(ClusterSpec::from_json, text);
  try_form(ClusterSpec::from_text, text);
  try_form(ClusterSpec::from_wire_form, text);
  if (const auto address = kolo::detail::parse_task_address(text))
    kolo::require(kolo::detail::parse_task_address(address->to_string()) == address);
  return 0;
}
