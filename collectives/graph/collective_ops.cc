#include <kolo/collectives/graph/collective_ops.h>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>

namespace kolo {
namespace {

const std::vector<DType> kNumeric = {DType::f16, DType::bf16, DType::f32, DType::f64,    DType::i8,
                                     DType::u8,  DType::i32,  DType::i64, DType::boolean};

AttrMap reduction_attrs(const Reduction& reduction, const ProcessSet& set) {
  return {{"reduction", name(reduction.op)},
          {"prescale", reduction.prescale},
          {"postscale", reduction.postscale},
          {"process_set", set.id()}};
}

OpSchema reducing(const char* op) {
  return OpSchema(op)
      .input("x", kNumeric)
      .required_attr("reduction", "sum")
      .attr("prescale", 1.0)
      .attr("postscale", 1.0)
      .attr("process_set", 0)
      .output("y")
      .stateful()
      .reduces_over_ranks()
      .cpu_only();  // the engine takes the host's memory
}

void refuse_unless_linear(const Node& op) {
  const auto reduction = op.attr<std::string>("reduction");
  if (reduction != "sum" && reduction != "average")
    throw InvalidArgumentError("{}: {} of {} has no gradient; sum and average have", describe(op),
                               op.schema().name(), reduction);
}

// Rows come and go between ranks; how many, only a step tells.
void unknown_rows(ShapeContext& c) {
  const Shape& x = c.input(0);
  if (!x.has_rank()) return;
  if (x.rank() == 0) throw InvalidArgumentError("needs at least one dimension; x is a scalar");
  std::vector<std::int64_t> dims = x.dims();
  dims[0] = -1;
  c.set_output(0, Shape(std::move(dims)));
}

void rows_and_counts(ShapeContext& c) {
  unknown_rows(c);
  c.set_output(1, Shape{-1});
}

const RegisterOp allreduce_op(
    reducing("EngineAllReduce").in_place(0).gradient([](Scope& s, const Node& op, Output dy) {
      refuse_unless_linear(op);
      return Outputs{s.add("EngineAllReduce", {dy}, op.attrs())};
    }));

const RegisterOp reduce_scatter_op(
    reducing("ReduceScatter").shape(unknown_rows).gradient([](Scope& s, const Node& op, Output dy) {
      refuse_unless_linear(op);
      return Outputs{s.add("ReduceScatterGrad", {dy, op.input(0)}, op.attrs())};
    }));

// dy of all ranks, as the reduction scaled its rows; x gives the shape.
const RegisterOp reduce_scatter_grad_op(
    reducing("ReduceScatterGrad").input("forward_x", "x").shape([](ShapeContext& c) {
      c.set_output(0, c.input(1));
    }));

// dy's rows, sent the way back: what came from a rank, as many rows as op's second output says, returns to
// it.
Output sent_back(Scope& s, const Node& op, const Output& dy) {
  return s
      .add("AllToAll", {dy, op.output(1)},
           {{"root", -1}, {"process_set", op.attr<std::int64_t>("process_set")}})
      .output(0);
}

// What each rank gave is taken back from each: R blocks of x's shape, which are summed.
const RegisterOp allgather_op(OpSchema("AllGather")
                                  .input("x", kNumeric)
                                  .attr("process_set", 0)
                                  .output("rows")
                                  .output("counts", DType::i64)
                                  .stateful()
                                  .reduces_over_ranks()
                                  .cpu_only()
                                  .shape(rows_and_counts)
                                  .gradient([](Scope& s, const Node& op, Output dy) {
                                    const Output back = sent_back(s, op, dy);
                                    return Outputs{s.add("SumOfBlocks", {back, op.input(0)})};
                                  }));

const RegisterOp sum_of_blocks_op(OpSchema("SumOfBlocks")
                                      .input("blocks", {DType::f32, DType::f64})
                                      .input("like", "blocks")
                                      .output("sum")
                                      .shape([](ShapeContext& c) { c.set_output(0, c.input(1)); }));

OpSchema rooted(const char* op) {
  return OpSchema(op)
      .input("x", kNumeric)
      .required_attr("root", 0)
      .attr("process_set", 0)
      .output("y")
      .stateful()
      .reduces_over_ranks()
      .cpu_only();  // the engine takes the host's memory
}

const RegisterOp broadcast_op(
    rooted("BroadcastFrom").in_place(0).gradient([](Scope& s, const Node& op, Output dy) {
      return Outputs{s.add("BroadcastFromGrad", {dy}, op.attrs())};
    }));
const RegisterOp broadcast_grad_op(rooted("BroadcastFromGrad").in_place(0));

const RegisterOp scatter_op(
    rooted("ScatterFrom").shape(unknown_rows).gradient([](Scope& s, const Node& op, Output dy) {
      return Outputs{s.add("ScatterFromGrad", {dy, op.input(0)}, op.attrs())};
    }));
const RegisterOp scatter_grad_op(rooted("ScatterFromGrad").input("forward_x", "x").shape([](ShapeContext& c) {
  c.set_output(0, c.input(1));
}));

// root ≥ 0: all rows go there, and splits are not looked at.
const RegisterOp alltoall_op(OpSchema("AllToAll")
                                 .input("x", kNumeric)
                                 .input("splits", {DType::i64})
                                 .attr("root", -1)
                                 .attr("process_set", 0)
                                 .output("rows")
                                 .output("received_splits", DType::i64)
                                 .stateful()
                                 .reduces_over_ranks()
                                 .cpu_only()
                                 .shape(rows_and_counts)
                                 .gradient([](Scope& s, const Node& op, Output dy) {
                                   return Outputs{sent_back(s, op, dy), Output()};
                                 }));

AlltoallOutputs add_alltoall(const Scope& s, Output x, Output splits, int root, const ProcessSet& set) {
  if (splits.node == nullptr) splits = constant(s.name_scope("splits"), Tensor(DType::i64, Shape{0}));
  const Operation node = s.add("AllToAll", {x, splits}, {{"root", root}, {"process_set", set.id()}});
  return {node.output(0), node.output(1)};
}

void check(const Reduction& reduction, const Output& x) { check_reducible(reduction, x.dtype()); }

}  // namespace

Output allreduce(const Scope& s, Output x, const Reduction& reduction, const ProcessSet& set) {
  check(reduction, x);
  const bool is_schedulable = (reduction.op == ReduceOp::sum || reduction.op == ReduceOp::average) &&
                              !reduction.is_scaled() && set == ProcessSet() && is_floating(x.dtype()) &&
                              x.shape().is_fully_known();
  if (is_schedulable) return scheduled_allreduce(s, x, reduction.op);
  return s.add("EngineAllReduce", {x}, reduction_attrs(reduction, set));
}

Output allgather(const Scope& s, Output x, const ProcessSet& set) {
  return s.add("AllGather", {x}, {{"process_set", set.id()}});
}

Output reduce_scatter(const Scope& s, Output x, const Reduction& reduction, const ProcessSet& set) {
  check(reduction, x);
  return s.add("ReduceScatter", {x}, reduction_attrs(reduction, set));
}

Output broadcast(const Scope& s, Output x, int root, const ProcessSet& set) {
  return s.add("BroadcastFrom", {x}, {{"root", root}, {"process_set", set.id()}});
}

AlltoallOutputs alltoall(const Scope& s, Output x, Output splits, const ProcessSet& set) {
  return add_alltoall(s, x, splits, -1, set);
}

Output gather_to(const Scope& s, Output x, int root, const ProcessSet& set) {
  return add_alltoall(s, x, Output(), root, set).rows;
}

Output scatter_from(const Scope& s, Output x, int root, const ProcessSet& set) {
  return s.add("ScatterFrom", {x}, {{"root", root}, {"process_set", set.id()}});
}

}  // namespace kolo
