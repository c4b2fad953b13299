#include <kolo/core/ops/broadcast_gradient.h>

#include <kolo/core/ops/reductions.h>

namespace kolo::detail {
namespace {

// True if `x` is certainly not repeated when it is broadcast against `other`.
bool keeps_shape(const Shape& x, const Shape& other) {
  if (!x.has_rank() || !other.has_rank() || x.rank() < other.rank()) return false;
  for (int axis = 1; axis <= other.rank(); ++axis)
    if (const std::int64_t dim = x.dim(-axis); (dim == 1 || dim == -1) && other.dim(-axis) != 1) return false;
  return true;
}

}  // namespace

Output summed_to_input(const Scope& s, Output dx, const Node& op, int i) {
  const Output x = op.input(i);
  for (int other = 0; other < op.num_inputs(); ++other)
    if (other != i && !keeps_shape(x.shape(), op.input(other).shape())) return sum_like(s, dx, x);
  return dx;
}

}  // namespace kolo::detail
