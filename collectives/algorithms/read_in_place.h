// What an allreduce offers by Collective::read_in_place(), if it can leave the summing to whoever reads its
// elements.
#pragma once

#include <cstddef>
#include <span>

namespace kolo {

/// The thread that starts the allreduce.
class ReadInPlace {
 public:
  virtual ~ReadInPlace() = default;
  /// Before start(): whether this rank would read all ranks' elements where they lie, once, instead of their
  /// sum. It is done so if all ranks would.
  virtual void ask_to_read(bool asks) = 0;
  /// Once it has finished: where each rank's elements lie, in the order of ranks, unreduced; none: they are
  /// reduced. Valid until the next start(). A rank may not write its own before all have read.
  virtual std::span<const std::byte* const> elements_of_ranks() const = 0;
};

}  // namespace kolo
