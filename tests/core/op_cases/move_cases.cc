// Ops that move elements, choose among them or name them.
#include <fmt/core.h>

#include <cstdint>

#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/debugging.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/slicing.h>
#include <tests/core/op_cases/op_cases.h>

namespace kolo::op_cases {

void add_moves(std::vector<Case>& cases) {
  const Shape shape{4, 33, 6};
  const auto add_one = [&](const char* name, const Build& build, bool has_gradient = true) {
    cases.push_back({name, Judge::same, {shape}, build, has_gradient});
  };
  add_one("slice", [](const Scope& s, const Outputs& x) { return slice(s, x[0], {1, 2, 3}, {2, 30, 2}); });
  add_one("strided_slice", [](const Scope& s, const Outputs& x) {
    return strided_slice(s, x[0], {3, 0, 5}, {0, 33, 0}, {-1, 4, -2});
  });
  add_one("reverse", [](const Scope& s, const Outputs& x) { return reverse(s, x[0], {0, 2}); });
  add_one("pad", [](const Scope& s, const Outputs& x) {
    return pad(s, x[0], {{1, 0}, {0, 2}, {3, 1}}, -2.5);
  });
  add_one("transpose", [](const Scope& s, const Outputs& x) { return transpose(s, x[0], {2, 0, 1}); });
  add_one("concat", [](const Scope& s, const Outputs& x) {
    return concat(s, {x[0], neg(s, x[0]), x[0]}, 1);
  });
  add_one("split", [](const Scope& s, const Outputs& x) { return split(s, x[0], 3, 1)[2]; });
  add_one(
      "tile",
      [](const Scope& s, const Outputs& x) {
        return tile(s, x[0], {1, 2, 3});
      },
      false);
  add_one(
      "argmin", [](const Scope& s, const Outputs& x) { return argmin(s, x[0], 1); }, false);
  add_one(
      "one_hot",
      [](const Scope& s, const Outputs& x) {
        return one_hot(s, cast(s, mul(s, x[0], number_like(s, x[0], 4)), DType::i32), 4);
      },
      false);
  add_one(
      "reduce_any",
      [](const Scope& s, const Outputs& x) { return reduce_any(s, greater(s, x[0], neg(s, x[0]))); }, false);
  add_one("check_numerics", [](const Scope& s, const Outputs& x) { return check_numerics(s, x[0], "x"); });
  for (const std::int64_t k : {1, 2})
    cases.push_back(
        {fmt::format("batch_slice_{}", k), Judge::same, {shape}, [k](const Scope& s, const Outputs& x) {
           return batch_slice(s, x[0], k, 3);
         }});
  add_one("split_v", [](const Scope& s, const Outputs& x) { return split_v(s, x[0], {1, 30, 2}, 1)[1]; });
  cases.push_back({"broadcast_to", Judge::sums, {{4, 1, 6}}, [](const Scope& s, const Outputs& x) {
                     return broadcast_to(s, x[0], {3, 4, 5, 6});
                   }});
  cases.push_back({"gather_along_1", Judge::sums, {shape}, [](const Scope& s, const Outputs& x) {
                     return gather(s, x[0], constant(s, Tensor::of<std::int32_t>({2, 2}, {4, 0, 4, 1})), 1);
                   }});
  add_one(
      "one_hot_along_0",
      [](const Scope& s, const Outputs& x) {
        const Output numbers = constant(s, Tensor::of<std::int32_t>({5}, {2, 0, 2, 6, 0}));
        return cast(s, one_hot(s, numbers, 7, {.on = 3, .off = -1, .axis = 0}), x[0].dtype());
      },
      false);
  for (const bool taken : {true, false})
    cases.push_back({taken ? "cond_taken" : "cond_not_taken",
                     Judge::near,
                     {{5, 7}},
                     [taken](const Scope& s, const Outputs& x) {
                       const Output sum = reduce_sum(s, square(s, x[0]));
                       return cond(
                           s, greater(s, sum, number_like(s, x[0], taken ? 0 : 1e9)),
                           [&](const Scope& own) { return Outputs{neg(own, x[0])}; },
                           [&](const Scope& own) { return Outputs{exp(own, x[0])}; })[0];
                     },
                     false});
}

}  // namespace kolo::op_cases
