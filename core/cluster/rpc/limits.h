// What one call may bring with it, so that a stranger cannot make a process grow.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace kolo::detail {

/// Beyond these: ResourceExhaustedError naming limit and value, by what a header says, before memory is
/// taken.
struct RpcLimits {
  std::int64_t control_bytes = std::int64_t{16} << 20;  // of one control message
  std::int64_t graph_bytes = std::int64_t{1} << 30;
  std::int64_t graph_nodes = 1'000'000;
  // Of a tensor, and of all of a call that are kept until the last has come; 0: half of the machine's memory.
  std::int64_t tensor_bytes = 0;
  std::chrono::seconds handshake{10};
  std::size_t connections = 0;          // of a server at a time; 0: what its limit of open files allows
  std::size_t connections_of_peer = 0;  // of these, from one address; 0: half
  /// Of these, such as have shown no call that was accepted; half of them from one address. Beyond, the
  /// oldest makes way.
  std::size_t strangers = 256;
  /// Where a token is asked for: one that has sent more, besides the token, is cut.
  std::uint64_t stranger_bytes = 8 << 10;
  int refused_calls = 8;  // a stranger with more of them is cut
  /// Calls of strangers that the transport has read and is not done with. Beyond, new connections wait, and a
  /// stranger that has sent more than greeting_bytes besides the token is cut.
  std::int64_t unseen_calls = 2000;
  std::uint64_t greeting_bytes = 4 << 10;
  /// A call whose next message does not come for so long ends with DeadlineExceededError.
  std::chrono::milliseconds stalled_sender{60'000};
  /// Bytes of one message of a large tensor: KOLO_RPC_CHUNK_BYTES, 64 KiB … 16 MiB; 1 MiB without it.
  std::size_t chunk_bytes = 0;  // 0: the variable's
};

/// What a call of a master has beyond its own deadline: only the master knows whom it waited for, and its
/// answer must not lose against the transport.
inline constexpr std::chrono::milliseconds kAnswerTime{600};

/// The limits with every 0 replaced. Throws InvalidArgumentError for a KOLO_RPC_CHUNK_BYTES out of its range.
RpcLimits resolved(RpcLimits limits);

}  // namespace kolo::detail
