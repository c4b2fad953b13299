#include <kolo/core/ops/shape_of.h>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

void check_out_type(const ShapeContext& c) {
  const DType type = c.attr<DType>("out_type");
  if (type != DType::i32 && type != DType::i64)
    throw InvalidArgumentError("the shape and the size of a tensor are i32 or i64; {} was asked for", type);
}

const RegisterOp ops[] = {
    OpSchema("Shape")
        .input("x")
        .attr("out_type", DType::i32)
        .output("shape", "out_type")
        .metadata()
        .host_output(0)
        .no_gradient()
        .shape([](ShapeContext& c) {
          check_out_type(c);
          c.set_output(0, {c.input(0).has_rank() ? c.input(0).rank() : -1});
        }),
    OpSchema("Size")
        .input("x")
        .attr("out_type", DType::i32)
        .output("size", "out_type")
        .metadata()
        .host_output(0)
        .no_gradient()
        .shape([](ShapeContext& c) {
          check_out_type(c);
          c.set_output(0, Shape());
        }),
    OpSchema("Rank")
        .input("x")
        .output("rank", DType::i32)
        .metadata()
        .host_output(0)
        .no_gradient()
        .shape([](ShapeContext& c) { c.set_output(0, Shape()); }),
};

}  // namespace

Output shape_of(const Scope& s, Output x, DType out_type) {
  return s.add("Shape", {x}, {{"out_type", out_type}});
}
Output size_of(const Scope& s, Output x, DType out_type) {
  return s.add("Size", {x}, {{"out_type", out_type}});
}
Output rank_of(const Scope& s, Output x) { return s.add("Rank", {x}); }

}  // namespace kolo
