// What an allreduce or a reduce-scatter does to the ranks' elements.
#pragma once

#include <kolo/collectives/reduce/reduce_op.h>

namespace kolo {

/// Scales are for floating types, and apply in f32 (f64 for f64): every rank's elements × prescale are
/// combined by `op`, the result is × postscale. A scale of 1 costs nothing.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double prescale = 1;
  double postscale = 1;

  Reduction() = default;
  Reduction(ReduceOp op, double prescale = 1, double postscale = 1)  // NOLINT(google-explicit-constructor)
      : op(op), prescale(prescale), postscale(postscale) {}
  bool is_scaled() const { return prescale != 1 || postscale != 1; }
  bool operator==(const Reduction&) const = default;
};

/// Throws InvalidArgumentError as check_reducible does, and `scale factors need a floating dtype`.
void check_reducible(const Reduction& reduction, DType dtype);

}  // namespace kolo
