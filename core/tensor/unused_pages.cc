#include <kolo/core/tensor/unused_pages.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace kolo {
namespace {

constexpr std::size_t kWorthACall = std::size_t{4} << 20;

}  // namespace

void give_pages_back(void* block, std::size_t bytes) noexcept {
  if (bytes < kWorthACall) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t begin = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin,
          MADV_DONTNEED);  // a hint, too: the block works either way
}

}  // namespace kolo
