// The index of a checkpoint: what is read is written again so that it reads the same.
#include <string>

#include <kolo/core/base/crc32c.h>
#include <kolo/core/base/error.h>
#include <kolo/core/training/checkpoint_files.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  // With the sum that belongs to it: the fuzzer would never find one.
  const std::string body(reinterpret_cast<const char*>(bytes), size);
  const std::string text =
      body + ",\n \"index_crc32c\": \"" + kolo::crc32c_text(kolo::crc32c(body.data(), size)) + "\"\n}\n";
  try {
    const kolo::CheckpointIndex index = kolo::parse_checkpoint_index(text);
    const std::string written = checkpoint_index_text(index);
    kolo::require(checkpoint_index_text(kolo::parse_checkpoint_index(written)) == written);
  } catch (const kolo::Error&) {
  }
  return 0;
}
