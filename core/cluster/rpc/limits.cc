#include <kolo/core/cluster/rpc/limits.h>

#include <unistd.h>

#include <kolo/core/base/env.h>

namespace kolo::detail {

RpcLimits resolved(RpcLimits limits) {
  if (limits.tensor_bytes == 0)
    limits.tensor_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE) / 2;
  if (limits.chunk_bytes == 0)
    limits.chunk_bytes = static_cast<std::size_t>(env_int64("KOLO_RPC_CHUNK_BYTES", std::int64_t{1} << 20,
                                                            std::int64_t{64} << 10, std::int64_t{16} << 20));
  return limits;
}

}  // namespace kolo::detail
