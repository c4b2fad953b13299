// Files of tensors from outside: what the header lists can be read and summed, within the file's own size.
#include <kolo/core/base/error.h>
#include <kolo/core/training/safetensors.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    kolo::SafetensorsReader reader(kolo::write_fuzz_file(bytes, size));
    for (const auto& [name, entry] : reader.entries()) {
      kolo::require(entry.end - entry.begin <= size);
      if (entry.dtype != kolo::DType::string)
        kolo::require(reader.read(name).bytes() == entry.end - entry.begin);
      reader.crc32c(name);
    }
  } catch (const kolo::Error&) {
  }
  return 0;
}
