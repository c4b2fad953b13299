// Ops that treat each element by itself, and those that draw elements.
#include <fmt/core.h>

#include <cstdint>
#include <utility>

#include <kolo/core/ops/activations.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/reductions.h>
#include <tests/core/op_cases/op_cases.h>

namespace kolo::op_cases {
namespace {

Build binary(Output (*op)(const Scope&, Output, Output)) {
  return [op](const Scope& s, const Outputs& x) { return op(s, x[0], x[1]); };
}
// Of numbers in (0.5, 2.5).
Build of_positive(Output (*op)(const Scope&, Output)) {
  return [op](const Scope& s, const Outputs& x) { return op(s, add(s, x[0], number_like(s, x[0], 1.5))); };
}

struct Unary {
  const char* name;
  Output (*op)(const Scope&, Output);
  bool has_gradient = true;
};
struct Binary {
  const char* name;
  Output (*op)(const Scope&, Output, Output);
};

void add_activations(std::vector<Case>& cases) {
  const auto add_one = [&](const char* name, const Build& build) {
    cases.push_back({name, Judge::near, {{33, 31}}, build});
  };
  for (const auto& [name, op] : {std::pair("swish", &swish), {"selu", &selu}, {"softplus", &softplus}})
    add_one(name, unary(op));
  add_one("relu6",
          [](const Scope& s, const Outputs& x) { return relu6(s, mul(s, x[0], number_like(s, x[0], 9))); });
  add_one("gelu", [](const Scope& s, const Outputs& x) { return gelu(s, x[0]); });
  add_one("gelu_approximate", [](const Scope& s, const Outputs& x) { return gelu(s, x[0], true); });
  add_one("elu", [](const Scope& s, const Outputs& x) { return elu(s, x[0], 0.5); });
  add_one("leaky_relu", [](const Scope& s, const Outputs& x) { return leaky_relu(s, x[0]); });
  add_one("sin", unary(sin));
  add_one("cos", unary(cos));
}

void add_casts(std::vector<Case>& cases) {
  for (const DType type :
       {DType::f16, DType::bf16, DType::f64, DType::i8, DType::u8, DType::i32, DType::i64, DType::boolean})
    cases.push_back({fmt::format("cast_to_{}_and_back", type),
                     Judge::same,
                     {{4000}},
                     [type](const Scope& s, const Outputs& x) {
                       const Output wide = mul(s, x[0], number_like(s, x[0], 64));
                       return cast(s, cast(s, wide, type), x[0].dtype());
                     },
                     false});
}

void add_draws(std::vector<Case>& cases) {
  const auto add_one = [&](const char* name, const Build& build, bool has_gradient) {
    cases.push_back({name, Judge::drawn, {{1001}}, build, has_gradient});
  };
  add_one(
      "random_uniform",
      [](const Scope& s, const Outputs&) { return random_uniform(s, DType::f32, {1001}, -2, 3, 5); }, false);
  add_one(
      "random_normal",
      [](const Scope& s, const Outputs&) { return random_normal(s, DType::f32, {1001}, 1, 2, 5); }, false);
  add_one(
      "truncated_normal",
      [](const Scope& s, const Outputs&) { return truncated_normal(s, DType::f32, {1001}, 1, 2, 5); }, false);
  add_one(
      "gaussian_noise", [](const Scope& s, const Outputs& x) { return gaussian_noise(s, x[0], 0.3, 5); },
      true);
  add_one(
      "dropout", [](const Scope& s, const Outputs& x) { return dropout(s, x[0], 0.3, 5); }, true);
}

}  // namespace

void add_elementwise(std::vector<Case>& cases, bool large) {
  const std::vector<Shape> one = {large ? Shape{1025, 1023} : Shape{33, 31}};
  const std::vector<Shape> two = {one[0], one[0]};
  for (const Unary& u : {Unary{"neg", neg},
                         {"abs", abs},
                         {"sign", sign, false},
                         {"square", square},
                         {"relu", relu},
                         {"floor", floor, false},
                         {"ceil", ceil, false},
                         {"round", round, false}})
    cases.push_back({u.name, Judge::same, one, unary(u.op), u.has_gradient});
  for (const Unary& u :
       {Unary{"exp", exp}, {"expm1", expm1}, {"tanh", tanh}, {"sigmoid", sigmoid}, {"erf", erf}})
    cases.push_back({u.name, Judge::near, one, unary(u.op)});
  for (const Unary& u :
       {Unary{"sqrt", sqrt}, {"rsqrt", rsqrt}, {"log", log}, {"log1p", log1p}, {"reciprocal", reciprocal}})
    cases.push_back({u.name, Judge::near, one, of_positive(u.op)});
  for (const Binary& b : {Binary{"add", add},
                          {"sub", sub},
                          {"mul", mul},
                          {"maximum", maximum},
                          {"minimum", minimum},
                          {"squared_difference", squared_difference}}) {
    cases.push_back({b.name, Judge::same, two, binary(b.op)});
    cases.push_back(
        {fmt::format("{}_broadcast", b.name), Judge::same, {{9, 1, 7}, {5, 1}}, binary(b.op), false});
  }
  for (const Binary& b : {Binary{"equal", equal},
                          {"not_equal", not_equal},
                          {"less", less},
                          {"less_equal", less_equal},
                          {"greater", greater},
                          {"greater_equal", greater_equal}})
    cases.push_back({b.name, Judge::same, two, binary(b.op), false});
  cases.push_back({"div", Judge::same, two, binary(div), false});
  cases.push_back({"select", Judge::same, two, [](const Scope& s, const Outputs& x) {
                     return select(s, less(s, x[0], x[1]), x[0], x[1]);
                   }});
  cases.push_back({"cast_to_i32", Judge::same, one,
                   [](const Scope& s, const Outputs& x) { return cast(s, x[0], DType::i32); }, false});
  cases.push_back({"argmax",
                   Judge::same,
                   {{17, 10}},
                   [](const Scope& s, const Outputs& x) { return argmax(s, x[0]); },
                   false});
  for (const auto& shapes : {std::vector<Shape>{{4, 3}, {3}}, {{4, 3}, {4, 1}}, {{}, {7}}})
    cases.push_back({fmt::format("sub_{}_and_{}", shapes[0].rank(), shapes[1].elements()), Judge::same,
                     shapes, binary(sub), false});
  add_activations(cases);
  add_casts(cases);
  add_draws(cases);
}

}  // namespace kolo::op_cases
