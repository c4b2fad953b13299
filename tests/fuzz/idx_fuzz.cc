// IDX files, plain and compressed: a tensor of the shape that was asked for, or a kolo::Error.
#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string path = kolo::write_fuzz_file(bytes, size);
  for (const int dimensions : {1, 3}) {
    try {
      const kolo::Tensor tensor = kolo::models::read_idx(path, dimensions);
      kolo::require(tensor.shape().dims().size() == static_cast<std::size_t>(dimensions));
    } catch (const kolo::Error&) {
    }
  }
  return 0;
}
