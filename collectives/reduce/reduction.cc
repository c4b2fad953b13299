#include <kolo/collectives/reduce/reduction.h>

#include <kolo/core/base/error.h>

namespace kolo {

void check_reducible(const Reduction& reduction, DType dtype) {
  check_reducible(reduction.op, dtype);
  if (reduction.is_scaled() && !is_floating(dtype))
    throw InvalidArgumentError("scale factors need a floating dtype; this is {}", numpy_name(dtype));
}

}  // namespace kolo
