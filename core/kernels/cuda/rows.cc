// Ops on rows that are named by their numbers.
#include <memory>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_rows.h>
#include <kolo/core/kernels/cuda/row_order.h>
#include <kolo/core/kernels/row_numbers.h>
#include <kolo/core/ops/indexing.h>

namespace kolo::cuda {
namespace {

// Of ops whose input 1 names rows.
class RowsKernel : public Kernel, public DeferredCheck {
 public:
  void check() override {
    if (const auto bad = bad_.take()) detail::throw_no_such_row(bad->value(), bad->place(), rows_.rows);
  }

 protected:
  // table: what has the rows, [outer, rows, inner] around the axis.
  RowsKernel(KernelInit& init, const Shape& table, int axis)
      : rows_{.outer = 1,
              .rows = 1,
              .inner = 1,
              .indices = nullptr,
              .index_type = element_type(init.input_dtype(1)),
              .count = init.input_shape(1).elements(),
              .bad = nullptr},
        bad_(init) {
    if (axis < 0) axis += table.rank();
    for (int i = 0; i < table.rank(); ++i)
      (i < axis ? rows_.outer : i == axis ? rows_.rows : rows_.inner) *= table.dim(i);
    rows_.bad = bad_.get();
  }
  Rows rows(const KernelContext& context) const {
    Rows rows = rows_;
    rows.indices = context.input(1).raw();
    return rows;
  }
  const Rows& rows_of_table() const { return rows_; }

 private:
  Rows rows_;
  BadValueWord bad_;
};

class GatherKernel final : public RowsKernel {
 public:
  explicit GatherKernel(KernelInit& init) : RowsKernel(init, init.input_shape(0), init.attr<int>("axis")) {}
  void compute(KernelContext& context) override {
    const Tensor& x = context.input(0);
    check_cuda(launch_gather(stream_of(context), {.bytes_per_element = static_cast<int>(size_of(x.dtype())),
                                                  .x = x.raw(),
                                                  .y = context.output(0).raw(),
                                                  .rows = rows(context)}),
               "gather");
  }
};

// Of ops that bring rows to rows of another tensor.
class ScatteringKernel : public RowsKernel {
 protected:
  ScatteringKernel(KernelInit& init, const Shape& table, int axis, Scatter scatter)
      : RowsKernel(init, table, axis),
        scatter_(scatter),
        order_(init, rows_of_table().count, rows_of_table().rows) {}
  void scatter(const KernelContext& context, const Tensor& x, const Tensor& y) const {
    Rows named = rows(context);
    order_.sort(context, named);
    check_cuda(launch_scatter(stream_of(context), {.scatter = scatter_,
                                                   .bytes_per_element = static_cast<int>(size_of(y.dtype())),
                                                   .x = x.raw(),
                                                   .y = y.raw(),
                                                   .rows = named}),
               "scatter");
  }

 private:
  Scatter scatter_;
  RowOrder order_;
};

// The sum of the rows of input 0 that belong to each row of the output.
class SumOfRowsKernel final : public ScatteringKernel {
 public:
  using Axis = int (*)(const KernelInit& init);
  SumOfRowsKernel(KernelInit& init, Axis axis)
      : ScatteringKernel(init, init.output_shape(0), axis(init), Scatter::sum) {}
  void compute(KernelContext& context) override { scatter(context, context.input(0), context.output(0)); }
};

class ScatterKernel final : public ScatteringKernel {
 public:
  ScatterKernel(KernelInit& init, Scatter scatter)
      : ScatteringKernel(init, init.input_shape(0), 0, scatter) {}
  void compute(KernelContext& context) override {
    scatter(context, context.input(2), context.variable(0).value);
  }
};

class AddRowsKernel final : public ScatteringKernel {
 public:
  explicit AddRowsKernel(KernelInit& init)
      : ScatteringKernel(init, init.input_shape(0), 0, Scatter::add_sum), api_(gpu_of(init).api) {}
  void compute(KernelContext& context) override {
    const Tensor &dense = context.input(0), &sum = context.output(0);
    copy_within(api_, context, dense, sum);
    scatter(context, context.input(2), sum);
  }

 private:
  const CudaApi& api_;
};

int axis_attr(const KernelInit& init) { return init.attr<int>("axis"); }
int first_axis(const KernelInit&) { return 0; }

const RegisterGpuKernel row_kernels[] = {
    {"Gather", kAllButStrings, planned<GatherKernel>()},
    {"GatherGrad", {DType::f32}, planned<SumOfRowsKernel>(axis_attr)},
    {"UnsortedSegmentSum", {DType::f32}, planned<SumOfRowsKernel>(first_axis)},
    {"SlicesToDense", {DType::f32}, planned<SumOfRowsKernel>(first_axis)},
    {detail::kAddRowsOp, {DType::f32}, planned<AddRowsKernel>()},
    {"ScatterAdd", {DType::f32}, planned<ScatterKernel>(Scatter::add)},
    {"ScatterSub", {DType::f32}, planned<ScatterKernel>(Scatter::sub)},
    {"ScatterUpdate", kAllButStrings, planned<ScatterKernel>(Scatter::update)},
};

}  // namespace
}  // namespace kolo::cuda
