#include <kolo/core/ops/orthogonalize.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

const RegisterOp orthogonalize_op(
    OpSchema("Orthogonalize")
        .input("x", {DType::f32, DType::f64})
        .output("q")
        .shape([](ShapeContext& c) {
          const Shape& x = c.input(0);
          c.set_output(0, x);
          if (!x.has_rank()) return;
          const bool is_tall = x.rank() == 2 && (x.dim(0) < 0 || x.dim(0) >= x.dim(1));
          if (!is_tall)
            throw InvalidArgumentError(
                "orthogonalize: x is {}; it must be a matrix with at least as many "
                "rows as columns",
                x);
        })
        .no_gradient());

}  // namespace

Output orthogonalize(const Scope& s, Output x) { return s.add("Orthogonalize", {x}); }

}  // namespace kolo
