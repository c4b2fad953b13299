// Random numbers by which sessions and calls are told apart.
#pragma once

#include <cstdint>
#include <string>

namespace kolo::detail {

/// 128 random bits in hex.
std::string random_session_handle();
/// Not 0. Any thread.
std::uint64_t random_request_id();

}  // namespace kolo::detail
