// Files of numpy.save: an array of the size that its header says, or a kolo::Error.
#include <kolo/core/base/error.h>
#include <kolo/models/data.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const kolo::Tensor array = kolo::models::read_npy(kolo::write_fuzz_file(bytes, size));
    kolo::require(array.bytes() < size);
  } catch (const kolo::Error&) {
  }
  return 0;
}
