// Each element of the result of one element of each operand, with broadcasting.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/kernels/cuda/cuda_kernel.h>
#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/elements/activations.h>

namespace kolo::cuda {
namespace {

class UnaryKernel final : public Kernel {
 public:
  UnaryKernel(KernelInit& init, int op) : op_(op), type_(element_type(init.input_dtype(0))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_unary(stream_of(context), {.op = op_,
                                                 .type = type_,
                                                 .x = context.input(0).raw(),
                                                 .y = context.output(0).raw(),
                                                 .elements = context.input(0).elements()}),
               "an op of one element");
  }

 private:
  int op_;  // its number in UnaryOps
  ElementType type_;
};

detail::StridedIndex<2> broadcast(const KernelInit& init) {
  return detail::broadcast_index(init.input_shape(0), init.input_shape(1), init.output_shape(0));
}

// A factor for each row of x.
detail::StridedIndex<2> by_rows(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  detail::StridedIndex<2> index;
  index.push(x.dim(0), {x.dim(1), 1});
  index.push(x.dim(1), {1, 0});
  return index;
}

// A number for each channel of x, which is [outer, channels, inner].
detail::StridedIndex<2> by_channels(const KernelInit& init) {
  const Shape& x = init.input_shape(0);
  const int axis = x.rank() == 4 && init.attr<std::string>("data_format") == "NCHW" ? 1 : x.rank() - 1;
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= x.dim(i);
  for (int i = axis + 1; i < x.rank(); ++i) inner *= x.dim(i);
  detail::StridedIndex<2> index;
  index.push(outer, {x.dim(axis) * inner, 0});
  index.push(x.dim(axis), {inner, 1});
  index.push(inner, {1, 0});
  return index;
}

class BinaryKernel final : public Kernel {
 public:
  using Index = detail::StridedIndex<2> (*)(const KernelInit& init);
  BinaryKernel(KernelInit& init, int op, Index index)
      : op_(op), type_(element_type(init.input_dtype(0))), walk_(walk_of(index(init))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_binary(stream_of(context), {.op = op_,
                                                  .type = type_,
                                                  .a = context.input(0).raw(),
                                                  .b = context.input(1).raw(),
                                                  .y = context.output(0).raw(),
                                                  .walk = walk_,
                                                  .elements = context.output(0).elements()}),
               "an op of two elements");
  }

 private:
  int op_;  // its number in BinaryOps
  ElementType type_;
  Walk<2> walk_;
};

class SelectKernel final : public Kernel {
 public:
  explicit SelectKernel(KernelInit& init)
      : walk_(walk_of(detail::broadcast_index_to(init.output_shape(0), init.input_shape(0),
                                                 init.input_shape(1), init.input_shape(2)))) {}
  void compute(KernelContext& context) override {
    const Tensor& y = context.output(0);
    check_cuda(launch_select(stream_of(context), {.condition = context.input(0).data<bool>(),
                                                  .a = context.input(1).raw(),
                                                  .b = context.input(2).raw(),
                                                  .y = y.raw(),
                                                  .bytes_per_element = static_cast<int>(size_of(y.dtype())),
                                                  .walk = walk_,
                                                  .elements = y.elements()}),
               "select");
  }

 private:
  Walk<3> walk_;
};

class CastKernel final : public Kernel {
 public:
  explicit CastKernel(KernelInit& init)
      : from_(element_type(init.input_dtype(0))), to_(element_type(init.output_dtype(0))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_cast(stream_of(context), {.from = from_,
                                                .to = to_,
                                                .x = context.input(0).raw(),
                                                .y = context.output(0).raw(),
                                                .elements = context.output(0).elements()}),
               "cast");
  }

 private:
  ElementType from_;
  ElementType to_;
};

std::unique_ptr<Kernel> make_cast(KernelInit& init) {
  if (init.output_dtype(0) == DType::string) return init.decline("there is no text in a GPU's memory");
  return planned<CastKernel>()(init);
}
std::unique_ptr<Kernel> make_select(KernelInit& init) {
  if (init.output_dtype(0) == DType::string) return init.decline("there is no text in a GPU's memory");
  return planned<SelectKernel>()(init);
}

class ActivationKernel final : public Kernel {
 public:
  ActivationKernel(KernelInit& init, int activation)
      : activation_(activation), alpha_(static_cast<float>(init.attr<double>("alpha"))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_activation(stream_of(context), {.activation = activation_,
                                                      .alpha = alpha_,
                                                      .x = context.input(0).data<float>(),
                                                      .y = context.output(0).data<float>(),
                                                      .elements = context.input(0).elements()}),
               "an activation");
  }

 private:
  int activation_;  // its number in elements::Activations
  float alpha_;
};

class ActivationGradKernel final : public Kernel {
 public:
  ActivationGradKernel(KernelInit& init, int activation)
      : activation_(activation),
        alpha_(static_cast<float>(init.attr<double>("alpha"))),
        walk_(walk_of(broadcast(init))) {}
  void compute(KernelContext& context) override {
    check_cuda(launch_activation_grad(stream_of(context), {.activation = activation_,
                                                           .alpha = alpha_,
                                                           .a = context.input(0).data<float>(),
                                                           .b = context.input(1).data<float>(),
                                                           .y = context.output(0).data<float>(),
                                                           .walk = walk_,
                                                           .elements = context.output(0).elements()}),
               "the gradient of an activation");
  }

 private:
  int activation_;  // its number in elements::Activations
  float alpha_;
  Walk<2> walk_;
};

// The sum grows in the output, two inputs at a time: the CPU's order.
class AddNKernel final : public Kernel {
 public:
  explicit AddNKernel(KernelInit& init) : api_(gpu_of(init).api), type_(element_type(init.input_dtype(0))) {
    for (int i = 1; i < init.num_inputs(); ++i)
      if (init.input_shape(i) != init.output_shape(0))
        throw InvalidArgumentError("AddN: input 0 is {} and input {} is {}; all must have one shape",
                                   init.input_shape(0), i, init.input_shape(i));
    detail::StridedIndex<2> index;
    index.push(init.output_shape(0).elements(), {1, 1});
    walk_ = walk_of(index);
  }

  void compute(KernelContext& context) override {
    const Tensor &y = context.output(0), &first = context.input(0);
    if (context.num_inputs() == 1) copy_within(api_, context, first, y);
    for (int i = 1; i < context.num_inputs(); ++i)
      check_cuda(launch_binary(stream_of(context), {.op = BinaryOps::index("Add"),
                                                    .type = type_,
                                                    .a = i == 1 ? first.raw() : y.raw(),
                                                    .b = context.input(i).raw(),
                                                    .y = y.raw(),
                                                    .walk = walk_,
                                                    .elements = y.elements()}),
                 "add_n");
  }

 private:
  const CudaApi& api_;
  ElementType type_;
  Walk<2> walk_;
};

template <typename T>
void add_type(elements::Numbers numbers, std::vector<DType>& types) {
  if (elements::gpu_takes<T>(numbers)) types.push_back(dtype_of<T>());
}
std::vector<DType> types_of(elements::Numbers numbers) {
  std::vector<DType> types;
  add_type<float>(numbers, types);
  add_type<std::int32_t>(numbers, types);
  add_type<std::int64_t>(numbers, types);
  add_type<bool>(numbers, types);
  return types;
}

const std::vector<RegisterGpuKernel> table_kernels = [] {
  std::vector<RegisterGpuKernel> made;
  UnaryOps::each([&](auto row) {
    using Op = typename decltype(row)::type;
    made.push_back({Op::kName, types_of(Op::kNumbers), planned<UnaryKernel>(UnaryOps::index(Op::kName))});
  });
  BinaryOps::each([&](auto row) {
    using Op = typename decltype(row)::type;
    made.push_back(
        {Op::kName, types_of(Op::kNumbers), planned<BinaryKernel>(BinaryOps::index(Op::kName), broadcast)});
  });
  elements::Activations::each([&](auto row) {
    const char* const name = decltype(row)::type::kName;
    const int number = elements::Activations::index(name);
    made.push_back({name, kReal, planned<ActivationKernel>(number)});
    made.push_back({std::string(name) + "Grad", kReal, planned<ActivationGradKernel>(number)});
  });
  return made;
}();

const RegisterGpuKernel elementwise_kernels[] = {
    {"ScaleRows", kReal, planned<BinaryKernel>(BinaryOps::index("Mul"), by_rows)},
    {"BiasAdd", kReal, planned<BinaryKernel>(BinaryOps::index("Add"), by_channels)},
    {"Select", {DType::boolean}, make_select},
    {"AddN", {DType::f32, DType::i64}, planned<AddNKernel>()},
    {"Cast", kAllButStrings, make_cast},
};

}  // namespace
}  // namespace kolo::cuda
