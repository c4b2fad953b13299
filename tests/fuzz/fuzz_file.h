// The fuzzer's bytes as a file: what reads files is fed through one.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace kolo {

inline void require(bool true_for_every_input) {
  if (!true_for_every_input) std::abort();
}

/// In memory; the same path each time.
inline std::string write_fuzz_file(const std::uint8_t* bytes, std::size_t size) {
  static const std::string path = "/dev/shm/kolo_fuzz_" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  static const auto removed_at_the_end = [] { return std::atexit([] { unlink(path.c_str()); }); }();
  require(removed_at_the_end == 0);
  return path;
}

}  // namespace kolo
