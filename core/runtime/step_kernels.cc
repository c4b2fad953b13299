#include <kolo/core/runtime/step_kernels.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/kernels/deferred_check.h>

namespace kolo {
namespace {

bool all_known(const std::vector<Shape>& shapes) {
  return std::all_of(shapes.begin(), shapes.end(), [](const Shape& shape) { return shape.is_fully_known(); });
}

std::vector<DType> input_dtypes(const StepGraph& step, const StepNode& node) {
  std::vector<DType> dtypes;
  for (const StepValue in : node.inputs) dtypes.push_back(step.dtype(in));
  return dtypes;
}

// Of this step.
std::vector<Shape> input_shapes(const KernelContext& context) {
  std::vector<Shape> shapes;
  for (const Tensor* input : context.inputs) shapes.push_back(input->shape());
  return shapes;
}

class ShapeKernel final : public Kernel, public DeferredCheck {
 public:
  ShapeKernel(std::unique_ptr<Kernel> kernel, const StepGraph& step, const StepNode& node, Allocator& memory,
              MakeForShapes make)
      : unshaped_(std::move(kernel)),
        node_(node),
        memory_(memory),
        make_(std::move(make)),
        dtypes_(input_dtypes(step, node)) {}

  void compute(KernelContext& context) override {
    std::vector<Shape> inputs = input_shapes(context);
    if (!is_made_ || inputs != inputs_) make_for(std::move(inputs));
    if (shaped_ == nullptr) return unshaped_->compute(context);
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      if (!node_.shapes[o].is_fully_known())
        context.set_output(static_cast<int>(o),
                           Tensor(node_.dtypes[o], outputs_[o], memory_of(static_cast<int>(o))));
    context.scratch_memory = scratch_ != nullptr ? scratch_->data() : nullptr;
    shaped_->compute(context);
  }

  void check() override KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (auto* const found = dynamic_cast<DeferredCheck*>(shaped_.get())) found->check();
  }

 private:
  void make_for(std::vector<Shape> inputs) {
    is_made_ = false;
    ShapeContext shapes(inputs, dtypes_, node_.attrs, static_cast<int>(node_.dtypes.size()));
    infer_shapes(*node_.schema, shapes);
    outputs_ = shapes.outputs();
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      if (!outputs_[o].is_compatible_with(node_.shapes[o]))
        throw InvalidArgumentError("output {} would have the shape {}; {} was expected", o, outputs_[o],
                                   node_.shapes[o]);
    replace_shaped(nullptr);  // before the other takes memory
    if (all_known(outputs_)) {
      std::size_t scratch_bytes = 0;
      replace_shaped(make_(inputs, outputs_, scratch_bytes));
      scratch_ = scratch_bytes > 0 ? std::make_unique<Buffer>(memory_, scratch_bytes) : nullptr;
    }
    inputs_ = std::move(inputs);
    is_made_ = true;
  }

  // Behind a fence another thread may be asking it at this moment.
  void replace_shaped(std::unique_ptr<Kernel> shaped) KOLO_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    std::swap(shaped_, shaped);
  }

  Allocator& memory_of(int output) const {
    return node_.schema->is_host_output(output, node_.dtypes[output]) ? cpu_allocator() : memory_;
  }

  std::unique_ptr<Kernel> unshaped_;
  const StepNode& node_;
  Allocator& memory_;
  MakeForShapes make_;
  std::vector<DType> dtypes_;
  bool is_made_ = false;
  std::vector<Shape> inputs_;
  std::vector<Shape> outputs_;
  Mutex mutex_;
  std::unique_ptr<Kernel> shaped_;  // read without mutex_ by compute() alone, which is who replaces it
  std::unique_ptr<Buffer> scratch_;
};

class ViewKernel final : public Kernel {
 public:
  ViewKernel(const StepGraph& step, const StepNode& node) : node_(node), dtypes_(input_dtypes(step, node)) {}

  void compute(KernelContext& context) override {
    ShapeContext shapes(input_shapes(context), dtypes_, node_.attrs, 1);
    infer_shapes(*node_.schema, shapes);
    context.set_output(0, context.input(0).reshaped(shapes.outputs()[0]));
  }

 private:
  const StepNode& node_;
  std::vector<DType> dtypes_;
};

}  // namespace

std::unique_ptr<Kernel> make_view(const StepGraph& step, const StepNode& node) {
  return std::make_unique<ViewKernel>(step, node);
}

std::unique_ptr<Kernel> follow_shapes(std::unique_ptr<Kernel> kernel, const StepGraph& step,
                                      const StepNode& node, Allocator& memory, MakeForShapes make) {
  return std::make_unique<ShapeKernel>(std::move(kernel), step, node, memory, std::move(make));
}

bool needs_shapes_of_the_step(const StepGraph& step, const StepNode& node) {
  if (node.inputs.empty() || node.resource != nullptr || node.schema->is_view() ||
      node.schema->is_branch_join())
    return false;
  std::vector<Shape> shapes = node.shapes;
  for (const StepValue in : node.inputs) shapes.push_back(step.shape(in));
  return !all_known(shapes);
}

}  // namespace kolo
