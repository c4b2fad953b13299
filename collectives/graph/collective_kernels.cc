// Kernels of the collectives in a graph: each starts its operation in the eager engine, under the node's
// name, and the node is done when the operation has ended.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/process_set_internal.h>
#include <kolo/collectives/reduce/reduce.h>
#include <kolo/core/base/error.h>
#include <kolo/core/kernels/kernel.h>

namespace kolo {
namespace {

class EngineKernel : public AsyncKernel {
 public:
  explicit EngineKernel(KernelInit& init)
      : set_(detail::ProcessSetAccess::of_id(init.attr<int>("process_set"))) {
    options_.name = init.node();
    options_.process_set = set_;
  }

 protected:
  // `end` runs when the operation has ended; it throws the operation's error, or makes of its result the
  // node's outputs.
  template <typename Result, typename End>
  static void finish_with(const Handle<Result>& handle, Completion done, End end) {
    handle.then([handle, done, end = std::move(end)] {
      std::exception_ptr error;
      try {
        end(handle);
      } catch (...) {
        error = std::current_exception();
      }
      done(std::move(error));
    });
  }

  const EagerOptions& options() const { return options_; }
  const ProcessSet& set() const { return set_; }

 private:
  const ProcessSet set_;
  EagerOptions options_;
};

Reduction reduction_of(const KernelInit& init) {
  return {reduce_op_from_name(init.attr<std::string>("reduction")), init.attr<double>("prescale"),
          init.attr<double>("postscale")};
}

// What works in place gets the input's values in the output's memory, which may be the same.
const Tensor& output_with_input(KernelContext& context) {
  const Tensor& y = context.output(0);
  if (y.bytes() > 0 && y.raw() != context.input(0).raw())
    std::memcpy(y.raw(), context.input(0).raw(), y.bytes());
  return y;
}

void expect_shape_of(const Tensor& result, const Tensor& like) {
  if (result.shape() != like.shape())
    throw InvalidArgumentError("the ranks' gradients make {}; the op's input was {}", result.shape(),
                               like.shape());
}

class AllReduceKernel final : public EngineKernel {
 public:
  explicit AllReduceKernel(KernelInit& init) : EngineKernel(init), reduction_(reduction_of(init)) {}
  void start(KernelContext& context, Completion done) override {
    finish_with(allreduce_in_place_async(output_with_input(context), reduction_, options()), done,
                [](const Handle<void>& handle) { handle.wait(); });
  }

 private:
  const Reduction reduction_;
};

class ReduceScatterKernel final : public EngineKernel {
 public:
  explicit ReduceScatterKernel(KernelInit& init) : EngineKernel(init), reduction_(reduction_of(init)) {}
  void start(KernelContext& context, Completion done) override {
    finish_with(reduce_scatter_async(context.input(0), reduction_, options()), done,
                [&context](const Handle<Tensor>& handle) { context.set_output(0, handle.wait()); });
  }

 private:
  const Reduction reduction_;
};

// The rows that the ranks' reduce-scatters kept, together again, scaled as they were.
class ReduceScatterGradKernel final : public EngineKernel {
 public:
  explicit ReduceScatterGradKernel(KernelInit& init) : EngineKernel(init), reduction_(reduction_of(init)) {}
  void start(KernelContext& context, Completion done) override {
    finish_with(allgather_async(context.input(0), options()), done,
                [this, &context](const Handle<Tensor>& handle) {
                  const Tensor rows = handle.wait(), &dx = context.output(0);
                  expect_shape_of(rows, dx);
                  dx.copy_from(rows);
                  if (reduction_.op == ReduceOp::average)
                    divide(dx.dtype(), dx.raw(), dx.elements(), set().size());
                  const double scale = reduction_.prescale * reduction_.postscale;
                  if (scale != 1) multiply(dx.dtype(), dx.raw(), dx.elements(), scale);
                });
  }

 private:
  const Reduction reduction_;
};

// Rows, and how many of them came from each rank.
void set_rows_and_counts(KernelContext& context, Tensor rows, const std::vector<std::int64_t>& counts) {
  Tensor numbers(DType::i64, Shape{static_cast<std::int64_t>(counts.size())});
  std::copy(counts.begin(), counts.end(), numbers.span<std::int64_t>().begin());
  context.set_output(0, std::move(rows));
  context.set_output(1, std::move(numbers));
}

class AllGatherKernel final : public EngineKernel {
 public:
  using EngineKernel::EngineKernel;
  void start(KernelContext& context, Completion done) override {
    finish_with(allgather_async(context.input(0), options()), done, [&context](const Handle<Tensor>& handle) {
      Tensor rows = handle.wait();
      set_rows_and_counts(context, std::move(rows), handle.rows_by_rank());
    });
  }
};

class AllToAllKernel final : public EngineKernel {
 public:
  explicit AllToAllKernel(KernelInit& init) : EngineKernel(init), root_(init.attr<int>("root")) {}
  void start(KernelContext& context, Completion done) override {
    const auto given = context.input(1).span<std::int64_t>();
    std::vector<std::int64_t> splits(given.begin(), given.end());
    if (root_ >= 0) splits = all_rows_to_root(context.input(0).shape().dim(0));
    finish_with(alltoall_async(context.input(0), splits, options()), done,
                [&context](const Handle<AlltoallResult>& handle) {
                  AlltoallResult result = handle.wait();
                  set_rows_and_counts(context, std::move(result.tensor), result.splits);
                });
  }

 private:
  std::vector<std::int64_t> all_rows_to_root(std::int64_t rows) const {
    const auto ranks = set().ranks();
    const auto root = std::find(ranks.begin(), ranks.end(), root_);
    if (root == ranks.end())
      throw InvalidArgumentError("root rank {} is outside the process set of {} ranks", root_, ranks.size());
    std::vector<std::int64_t> splits(ranks.size(), 0);
    splits[root - ranks.begin()] = rows;
    return splits;
  }
  const int root_;
};

class RootedKernel : public EngineKernel {
 public:
  explicit RootedKernel(KernelInit& init) : EngineKernel(init), root_(init.attr<int>("root")) {}

 protected:
  int root() const { return root_; }
  bool is_root() const { return set().ranks().at(set().rank()) == root_; }

 private:
  const int root_;
};

class BroadcastKernel final : public RootedKernel {
 public:
  using RootedKernel::RootedKernel;
  void start(KernelContext& context, Completion done) override {
    finish_with(broadcast_in_place_async(output_with_input(context), root(), options()), done,
                [](const Handle<void>& handle) { handle.wait(); });
  }
};

class BroadcastGradKernel final : public RootedKernel {
 public:
  using RootedKernel::RootedKernel;
  void start(KernelContext& context, Completion done) override {
    const Tensor& dx = output_with_input(context);
    finish_with(allreduce_in_place_async(dx, ReduceOp::sum, options()), done,
                [this, &dx](const Handle<void>& handle) {
                  handle.wait();
                  if (!is_root() && dx.bytes() > 0) std::memset(dx.raw(), 0, dx.bytes());
                });
  }
};

class ScatterKernel final : public RootedKernel {
 public:
  using RootedKernel::RootedKernel;
  void start(KernelContext& context, Completion done) override {
    finish_with(scatter_async(context.input(0), root(), options()), done,
                [&context](const Handle<Tensor>& handle) { context.set_output(0, handle.wait()); });
  }
};

class ScatterGradKernel final : public RootedKernel {
 public:
  using RootedKernel::RootedKernel;
  void start(KernelContext& context, Completion done) override {
    finish_with(gather_async(context.input(0), root(), options()), done,
                [this, &context](const Handle<Tensor>& handle) {
                  Tensor shares = handle.wait();
                  const Tensor& dx = context.output(0);
                  if (is_root()) expect_shape_of(shares, dx);
                  if (dx.bytes() == 0) return;
                  if (is_root()) std::memcpy(dx.raw(), shares.raw(), dx.bytes());
                  else std::memset(dx.raw(), 0, dx.bytes());
                });
  }
};

void sum_blocks(KernelContext& context) {
  const Tensor &blocks = context.input(0), &sum = context.output(0);
  if (sum.bytes() == 0) return;
  std::memset(sum.raw(), 0, sum.bytes());
  if (blocks.elements() % sum.elements() != 0)
    throw InvalidArgumentError("blocks {} are not of the shape {}", blocks.shape(), sum.shape());
  for (std::size_t first = 0; first < blocks.bytes(); first += sum.bytes())
    reduce(ReduceOp::sum, sum.dtype(), sum.raw(), blocks.raw() + first, sum.elements());
}

template <typename Kernel>
KernelFactory make() {
  return [](KernelInit& init) { return std::make_unique<Kernel>(init); };
}

const RegisterKernel allreduce_kernel("EngineAllReduce", "CPU", {}, make<AllReduceKernel>());
const RegisterKernel reduce_scatter_kernel("ReduceScatter", "CPU", {}, make<ReduceScatterKernel>());
const RegisterKernel reduce_scatter_grad_kernel("ReduceScatterGrad", "CPU", {},
                                                make<ReduceScatterGradKernel>());
const RegisterKernel allgather_kernel("AllGather", "CPU", {}, make<AllGatherKernel>());
const RegisterKernel alltoall_kernel("AllToAll", "CPU", {}, make<AllToAllKernel>());
const RegisterKernel broadcast_kernel("BroadcastFrom", "CPU", {}, make<BroadcastKernel>());
const RegisterKernel broadcast_grad_kernel("BroadcastFromGrad", "CPU", {}, make<BroadcastGradKernel>());
const RegisterKernel scatter_kernel("ScatterFrom", "CPU", {}, make<ScatterKernel>());
const RegisterKernel scatter_grad_kernel("ScatterFromGrad", "CPU", {}, make<ScatterGradKernel>());
const RegisterKernel sum_of_blocks_kernel("SumOfBlocks", "CPU", {DType::f32, DType::f64}, sum_blocks);

}  // namespace
}  // namespace kolo
