#include <kolo/core/base/keep_freed_memory.h>

#include <malloc.h>

#include <cstdlib>

namespace kolo {
namespace {

bool keep() {
  constexpr int kMapped = 8 << 20;
  constexpr int kKept = 16 << 20;
  for (const char* const chosen : {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"})
    if (std::getenv(chosen) != nullptr) return false;
  return mallopt(M_MMAP_THRESHOLD, kMapped) == 1 && mallopt(M_TRIM_THRESHOLD, kKept) == 1;
}

}  // namespace

void keep_freed_memory() { [[maybe_unused]] static const bool keeps = keep(); }

}  // namespace kolo
