// The file "checkpoint" of a folder: what is read is written again so that it reads the same.
#include <string>

#include <kolo/core/training/checkpoint_files.h>

#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto state = kolo::parse_checkpoint_state(std::string(reinterpret_cast<const char*>(bytes), size));
  if (!state) return 0;
  const std::string written = checkpoint_state_text(*state);
  const auto again = kolo::parse_checkpoint_state(written);
  kolo::require(again && checkpoint_state_text(*again) == written);
  return 0;
}
