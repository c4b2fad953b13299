// What the algorithms are written against: messages between two ranks. The implementations are MPI (and, to
// come, shared memory) and, in unit tests, a simulated network of hundreds of ranks in one process.
#pragma once

#include <cstddef>
#include <span>

namespace kolo {

/// Messages from one rank to another arrive in the order in which they were sent, and meet the receives in
/// the order in which those were posted. One thread. Nothing here waits; who waits, for how long and what
/// then, is the business of the thread that advances the operation.
class PointToPoint {
 public:
  /// A message on its way; valid until test() has said that it is done.
  using Request = int;

  virtual ~PointToPoint() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// The bytes may be changed once the request is done. At most 1 GiB.
  virtual Request send(int to, std::span<const std::byte> bytes) = 0;
  /// The message has exactly as many bytes.
  virtual Request receive(int from, std::span<std::byte> bytes) = 0;
  /// True when the request is done, which frees it. Throws where the network reports an error.
  virtual bool test(Request request) = 0;
};

}  // namespace kolo
