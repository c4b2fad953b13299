#include <kolo/collectives/job/mpi_parameters.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

namespace kolo::detail {
namespace {

// Open MPI keeps some dozens of buffers of this size for what arrives.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20;
constexpr std::int64_t kOpenMpiDefault = std::int64_t{64} << 10;
constexpr std::int64_t kHeaderBytes = 1024;  // and more than that
// The second bounds what the receiver takes in at a time.
constexpr std::array kNames = {"OMPI_MCA_btl_tcp_eager_limit", "OMPI_MCA_btl_tcp_max_send_size"};

}  // namespace

void send_chunks_at_once(std::int64_t chunk_bytes) {
  const std::int64_t bytes = std::min(chunk_bytes, kMostBytes) + kHeaderBytes;
  const bool is_chosen = std::any_of(kNames.begin(), kNames.end(),
                                     [](const char* name) { return std::getenv(name) != nullptr; });
  if (is_chosen || bytes <= kOpenMpiDefault) return;
  for (const char* name : kNames) setenv(name, std::to_string(bytes).c_str(), /*replace=*/0);
}

}  // namespace kolo::detail
