#include <kolo/core/ops/queues.h>

#include <utility>
#include <vector>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

constexpr char kDense[] = "ConditionalAccumulator";
constexpr char kSparse[] = "SparseConditionalAccumulator";
const std::vector<DType> kTypes = {DType::f32, DType::f64};

OpSchema accumulator(const char* op) {
  OpSchema schema(op);
  schema.required_attr("dtype", DType::f32).required_attr("shape", Shape()).attr("ordered", false);
  return schema.contained();
}

void check(const ShapeContext& c, bool sparse) {
  const auto shape = c.attr<Shape>("shape");
  const auto dtype = c.attr<DType>("dtype");
  if (dtype != DType::f32 && dtype != DType::f64)
    throw InvalidArgumentError("an accumulator of {}; it must be f32 or f64", dtype);
  if (!shape.is_fully_known())
    throw InvalidArgumentError("an accumulator of shape {}; it must be fully known", shape);
  if (sparse && shape.rank() == 0)
    throw InvalidArgumentError("an accumulator of rows has the shape []; it must have a first dimension");
}

const RegisterOp dense_op(accumulator(kDense).shape([](ShapeContext& c) {
  check(c, false);
  c.set_output(0, Shape());
}));
const RegisterOp sparse_op(accumulator(kSparse).shape([](ShapeContext& c) {
  check(c, true);
  c.set_output(0, Shape());
}));

OpSchema on(std::vector<std::string> accumulators, const char* op) {
  OpSchema schema(op);
  schema.input("handle", {DType::string})
      .handle_of(std::move(accumulators))
      .stateful()
      .cpu_only()
      .no_gradient();
  return schema;
}

void check_step(const ShapeContext& c) {
  if (!c.input(1).is_compatible_with(Shape()))
    throw InvalidArgumentError("the step has the shape {}; it must be a scalar", c.input(1));
}

// Input `i`, if there is one, and none behind it.
void check_generation(const ShapeContext& c, int i) {
  if (c.num_inputs() > i + 1 || (c.num_inputs() == i + 1 && !c.input(i).is_compatible_with(Shape())))
    throw InvalidArgumentError("the generation of an accumulator must be one scalar");
}

// sender: the task of the session's master, which fills it in; "" in local sessions.
const RegisterOp apply_op(on({kDense}, "AccumulatorApplyGradient")
                              .input("local_step", {DType::i64})
                              .input("gradient", kTypes)
                              .variadic("generation", {DType::i64})
                              .attr("sender", "")
                              .shape([](ShapeContext& c) {
                                check_step(c);
                                check_generation(c, 3);
                              }));
const RegisterOp sparse_apply_op(on({kSparse}, "SparseAccumulatorApplyGradient")
                                     .input("local_step", {DType::i64})
                                     .input("indices", {DType::i32, DType::i64})
                                     .input("values", kTypes)
                                     .variadic("generation", {DType::i64})
                                     .attr("sender", "")
                                     .shape([](ShapeContext& c) {
                                       check_step(c);
                                       check_generation(c, 4);
                                     }));

void check_required(const ShapeContext& c) {
  const auto required = c.attr<std::int64_t>("num_required");
  if (required <= 0)
    throw InvalidArgumentError("Argument num_required must be positive, but was {}", required);
}

const RegisterOp take_op(on({kDense}, "AccumulatorTakeGradient")
                             .required_attr("num_required", 1)
                             .required_attr("dtype", DType::f32)
                             .required_attr("shape", Shape())
                             .output("average", "dtype")
                             .shape([](ShapeContext& c) {
                               check_required(c);
                               check(c, false);
                               c.set_output(0, c.attr<Shape>("shape"));
                             }));
const RegisterOp sparse_take_op(on({kSparse}, "SparseAccumulatorTakeGradient")
                                    .required_attr("num_required", 1)
                                    .required_attr("dtype", DType::f32)
                                    .required_attr("shape", Shape())
                                    .output("indices", DType::i64)
                                    .output("values", "dtype")
                                    .shape([](ShapeContext& c) {
                                      check_required(c);
                                      check(c, true);
                                      c.set_output(0, {-1});
                                      c.set_output(1, c.attr<Shape>("shape").with_dim(0, -1));
                                    }));

const RegisterOp set_step_op(
    on({kDense, kSparse}, "AccumulatorSetGlobalStep").input("new_step", {DType::i64}).shape(check_step));
const RegisterOp accumulator_reset_op(
    on({kDense, kSparse}, "AccumulatorReset").variadic("generation", {DType::i64}).shape([](ShapeContext& c) {
      check_generation(c, 1);
    }));
const RegisterOp num_accumulated_op(
    on({kDense, kSparse}, "AccumulatorNumAccumulated").output("count", DType::i32));
const RegisterOp num_dropped_op(on({kDense, kSparse}, "AccumulatorNumDropped").output("count", DType::i64));

void check_gradient(DType dtype, const Shape& shape, const Output& gradient) {
  if (!gradient) throw InvalidArgumentError("apply_grad: the gradient is empty");
  if (gradient.dtype() != dtype)
    throw InvalidArgumentError("Type mismatch: expected {}, got {}", tf_name(dtype),
                               tf_name(gradient.dtype()));
  if (!gradient.shape().is_compatible_with(shape))
    throw InvalidArgumentError("Shape mismatch: expected {}, got {}", shape, gradient.shape());
}

Operation on_accumulator(const Scope& s, const char* op, const Accumulator& accumulator, Outputs inputs = {},
                         AttrMap attrs = {}) {
  inputs.insert(inputs.begin(), accumulator.handle());
  return s.colocate_with(accumulator.handle()).add(op, inputs, std::move(attrs));
}

Outputs with_generation(Outputs inputs, const Output& generation) {
  if (generation) inputs.push_back(generation);
  return inputs;
}

Operation add_take(const Scope& s, const char* op, const Accumulator& accumulator, std::int64_t n) {
  return on_accumulator(
      s, op, accumulator, {},
      {{"num_required", n}, {"dtype", accumulator.dtype()}, {"shape", accumulator.shape()}});
}

}  // namespace

Accumulator::Accumulator(const Scope& s, const char* op, DType dtype, Shape shape, AccumulatorOptions options)
    : handle_(s.add(op, {},
                    {{"dtype", dtype},
                     {"shape", shape},
                     {"ordered", options.ordered},
                     {"shared_name", std::move(options.shared_name)}})),
      dtype_(dtype),
      shape_(std::move(shape)) {}

ConditionalAccumulator::ConditionalAccumulator(const Scope& s, DType dtype, Shape shape,
                                               AccumulatorOptions options)
    : Accumulator(s, kDense, dtype, std::move(shape), std::move(options)) {}

SparseConditionalAccumulator::SparseConditionalAccumulator(const Scope& s, DType dtype, Shape shape,
                                                           AccumulatorOptions options)
    : Accumulator(s, kSparse, dtype, std::move(shape), std::move(options)) {}

Operation apply_grad(const Scope& s, const ConditionalAccumulator& accumulator, Output gradient,
                     Output local_step, Output generation) {
  check_gradient(accumulator.dtype(), accumulator.shape(), gradient);
  return on_accumulator(s, "AccumulatorApplyGradient", accumulator,
                        with_generation({local_step, gradient}, generation));
}

Operation apply_grad(const Scope& s, const SparseConditionalAccumulator& accumulator,
                     const IndexedSlices& gradient, Output local_step, Output generation) {
  const Shape rows = accumulator.shape().with_dim(0, -1);
  check_gradient(accumulator.dtype(), rows, gradient.values);
  return on_accumulator(s, "SparseAccumulatorApplyGradient", accumulator,
                        with_generation({local_step, gradient.indices, gradient.values}, generation));
}

Output take_grad(const Scope& s, const ConditionalAccumulator& accumulator, std::int64_t n) {
  return add_take(s, "AccumulatorTakeGradient", accumulator, n);
}

IndexedSlices take_grad(const Scope& s, const SparseConditionalAccumulator& accumulator, std::int64_t n) {
  const Operation taken = add_take(s, "SparseAccumulatorTakeGradient", accumulator, n);
  return {.values = taken.output(1), .indices = taken.output(0), .dense_shape = accumulator.shape()};
}

Operation set_global_step(const Scope& s, const Accumulator& accumulator, Output step) {
  return on_accumulator(s, "AccumulatorSetGlobalStep", accumulator, {step});
}
Operation reset_accumulator(const Scope& s, const Accumulator& accumulator, Output generation) {
  return on_accumulator(s, "AccumulatorReset", accumulator, with_generation({}, generation));
}
Output num_accumulated(const Scope& s, const Accumulator& accumulator) {
  return on_accumulator(s, "AccumulatorNumAccumulated", accumulator);
}
Output num_dropped(const Scope& s, const Accumulator& accumulator) {
  return on_accumulator(s, "AccumulatorNumDropped", accumulator);
}

}  // namespace kolo
