#include <kolo/core/cluster/master/request_id.h>

#include <fmt/format.h>

#include <random>

namespace kolo::detail {
namespace {

std::uint64_t random_bits() {
  std::random_device device;
  return (static_cast<std::uint64_t>(device()) << 32) | device();
}

}  // namespace

// Who knows a handle may use the session: it is not drawn from a generator that others could wind forward.
std::string random_session_handle() { return fmt::format("{:016x}{:016x}", random_bits(), random_bits()); }

std::uint64_t random_request_id() {
  thread_local std::mt19937_64 generator(random_bits());
  while (true)
    if (const std::uint64_t id = generator(); id != 0) return id;
}

}  // namespace kolo::detail
