#include <kolo/core/ops/transpose.h>

#include <utility>

#include <fmt/ranges.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

using Perm = std::vector<std::int64_t>;

void check_permutation(const Perm& perm) {
  std::vector<bool> seen(perm.size());
  for (const std::int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(perm.size()) || seen[axis])
      throw InvalidArgumentError("transpose: perm [{}] is not a permutation of 0 … {}", fmt::join(perm, ","),
                                 static_cast<std::int64_t>(perm.size()) - 1);
    seen[axis] = true;
  }
}

const RegisterOp transpose_op(OpSchema("Transpose")
                                  .input("x")
                                  .required_attr("perm", Perm())
                                  .output("y")
                                  .shape([](ShapeContext& c) {
                                    const Perm perm = c.attr<Perm>("perm");
                                    check_permutation(perm);
                                    const Shape& x = c.input(0);
                                    if (!x.has_rank()) return c.set_output(0, Shape(Perm(perm.size(), -1)));
                                    if (x.rank() != static_cast<int>(perm.size()))
                                      throw InvalidArgumentError(
                                          "transpose: x is {}, of {} dimensions, but perm has {} entries", x,
                                          x.rank(), perm.size());
                                    Perm dims;
                                    for (const std::int64_t axis : perm) dims.push_back(x.dims()[axis]);
                                    c.set_output(0, Shape(std::move(dims)));
                                  })
                                  .gradient([](Scope& s, const Node& op, Output dy) {
                                    const Perm perm = op.attr<Perm>("perm");
                                    Perm inverse(perm.size());
                                    for (std::size_t i = 0; i < perm.size(); ++i)
                                      inverse[perm[i]] = static_cast<std::int64_t>(i);
                                    return Outputs{transpose(s, dy, std::move(inverse))};
                                  }));

}  // namespace

Output transpose(const Scope& s, Output x, std::vector<std::int64_t> perm) {
  if (perm.empty())
    for (int axis = x.shape().rank(); axis-- > 0;) perm.push_back(axis);
  return s.add("Transpose", {x}, {{"perm", std::move(perm)}});
}

}  // namespace kolo
