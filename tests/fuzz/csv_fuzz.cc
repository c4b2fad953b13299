// Tables of comma-separated values: finite numbers, and labels from 0 on or finite ones, as many of each, or
// a kolo::Error.
#include <cmath>

#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const kolo::models::CsvTable table = kolo::models::read_csv(kolo::write_fuzz_file(bytes, size));
    kolo::require(table.x.shape().dim(0) == table.y.shape().dim(0) && table.y.elements() > 0);
    for (const float value : table.x.span<float>()) kolo::require(std::isfinite(value));
    if (table.schema->regression)
      for (const float number : table.y.span<float>()) kolo::require(std::isfinite(number));
    else
      for (const std::int32_t label : table.y.span<std::int32_t>()) kolo::require(label >= 0);
  } catch (const kolo::Error&) {
  }
  return 0;
}
