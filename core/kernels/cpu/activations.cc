#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/kernels/cpu/dropout.h>
#include <kolo/core/kernels/cpu/loops/activation_loops.h>
#include <kolo/core/kernels/cpu/onednn/onednn.h>
#include <kolo/core/kernels/elements/activations.h>
#include <kolo/core/kernels/elements/philox.h>
#include <kolo/core/kernels/kernel.h>
#include <kolo/core/kernels/parallel.h>

namespace kolo {
namespace {

// Below the grain of cheap element-wise loops: an exponential each.
constexpr std::int64_t kActivationGrain = 4096;

class ActivationKernel final : public Kernel {
 public:
  ActivationKernel(const char* activation, const KernelInit& init)
      : loop_(detail::activation_loop(activation, init.input_dtype(0))), alpha_(init.attr<double>("alpha")) {}

  void compute(KernelContext& context) override {
    const Tensor &x = context.input(0), &y = context.output(0);
    const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
    parallel_for(x.elements(), kActivationGrain, [&](std::int64_t begin, std::int64_t end) {
      loop_(x.raw() + begin * size, alpha_, y.raw() + begin * size, end - begin);
    });
  }

 private:
  detail::ActivationLoop loop_;
  double alpha_;
};

class ActivationGradKernel final : public Kernel {
 public:
  ActivationGradKernel(const char* activation, const KernelInit& init)
      : loop_(detail::activation_grad_loop(activation, init.input_dtype(0))),
        alpha_(init.attr<double>("alpha")) {}

  void compute(KernelContext& context) override {
    const Tensor &dy = context.input(0), &x = context.input(1), &dx = context.output(0);
    const auto size = static_cast<std::int64_t>(size_of(x.dtype()));
    parallel_for(x.elements(), kActivationGrain, [&](std::int64_t begin, std::int64_t end) {
      loop_(dy.raw() + begin * size, x.raw() + begin * size, alpha_, dx.raw() + begin * size, end - begin);
    });
  }

 private:
  detail::ActivationGradLoop loop_;
  double alpha_;
};

template <typename K>
KernelFactory for_activation(const char* activation) {
  return [activation](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<K>(activation, init);
  };
}

// Each op and its gradient.
const std::vector<RegisterKernel> activations = [] {
  const std::vector<DType> types = {DType::f32, DType::f64};
  std::vector<RegisterKernel> made;
  elements::Activations::each([&](auto row) {
    const char* const name = decltype(row)::type::kName;
    made.emplace_back(name, "CPU", types, for_activation<ActivationKernel>(name));
    made.emplace_back(std::string(name) + "Grad", "CPU", types, for_activation<ActivationGradKernel>(name));
  });
  return made;
}();

// A tensor seen as [outer, count, inner]: each result belongs to `count` elements that are `inner` apart.
struct View {
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
};

View view_of(const Shape& shape, std::int64_t axis) {
  if (axis < 0) axis += shape.rank();
  View view;
  for (int i = 0; i < shape.rank(); ++i)
    (i < axis ? view.outer : i == axis ? view.count : view.inner) *= shape.dim(i);
  return view;
}

// oneDNN's view of it; a matrix where the axis is the last, for which it has most implementations.
struct OneDnnView {
  explicit OneDnnView(const KernelInit& init) {
    const View view = view_of(init.input_shape(0), init.attr<std::int64_t>("axis"));
    desc = view.inner == 1 ? detail::row_major(DType::f32, {view.outer, view.count})
                           : detail::row_major(DType::f32, {view.outer, view.count, view.inner});
  }
  dnnl::memory::desc desc;
};

template <typename Forward>
std::optional<detail::OneDnnCall> plan_forward(const KernelInit& init) {
  const auto desc = OneDnnView(init).desc;
  const typename Forward::desc pass(dnnl::prop_kind::forward_training, desc, 1);
  typename Forward::primitive_desc chosen(pass, detail::own_scratch(), detail::onednn_engine(), true);
  if (!chosen || !detail::skip_reference(chosen)) return std::nullopt;
  return detail::OneDnnCall(Forward(chosen), chosen.scratchpad_desc(), {{DNNL_ARG_SRC, desc, desc}},
                            {{DNNL_ARG_DST, desc, desc}});
}

template <typename Forward, typename Backward>
std::optional<detail::OneDnnCall> plan_backward(const KernelInit& init) {
  const auto desc = OneDnnView(init).desc;
  const typename Forward::primitive_desc forward({dnnl::prop_kind::forward_training, desc, 1},
                                                 detail::onednn_engine());
  typename Backward::primitive_desc chosen({desc, desc, 1}, detail::own_scratch(), detail::onednn_engine(),
                                           forward, true);
  if (!chosen || !detail::skip_reference(chosen)) return std::nullopt;
  return detail::OneDnnCall(Backward(chosen), chosen.scratchpad_desc(),
                            {{DNNL_ARG_DST, desc, desc}, {DNNL_ARG_DIFF_DST, desc, desc}},
                            {{DNNL_ARG_DIFF_SRC, desc, desc}});
}

template <typename Forward>
std::unique_ptr<Kernel> make_onednn(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0}, plan_forward<Forward>);
}
template <typename Forward, typename Backward>
std::unique_ptr<Kernel> make_onednn_grad(KernelInit& init) {
  return detail::make_onednn_kernel(init, {0, 1}, plan_backward<Forward, Backward>);
}

// Calls visit(first element of a result's line) for all lines.
template <typename Visit>
void for_lines(const View& view, const Visit& visit) {
  if (view.count == 0) return;
  parallel_for(view.outer * view.inner, std::max<std::int64_t>(1, kElementGrain / (16 * view.count)),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t line = begin; line < end; ++line)
                   visit(line / view.inner * view.count * view.inner + line % view.inner);
               });
}

template <typename T>
void softmax_line(const T* x, T* y, std::int64_t end, std::int64_t step) {
  T largest = x[0], sum(0);
  for (std::int64_t i = step; i < end; i += step) largest = std::max(largest, x[i]);
  for (std::int64_t i = 0; i < end; i += step) sum += y[i] = std::exp(x[i] - largest);
  for (std::int64_t i = 0; i < end; i += step) y[i] /= sum;
}
template <typename T>
void log_softmax_line(const T* x, T* y, std::int64_t end, std::int64_t step) {
  T largest = x[0], sum(0);
  for (std::int64_t i = step; i < end; i += step) largest = std::max(largest, x[i]);
  for (std::int64_t i = 0; i < end; i += step) sum += std::exp(x[i] - largest);
  const T log_sum = std::log(sum);
  for (std::int64_t i = 0; i < end; i += step) y[i] = x[i] - largest - log_sum;
}
// dx = y · (dy − Σ y · dy)
template <typename T>
void softmax_grad_line(const T* y, const T* dy, T* dx, std::int64_t end, std::int64_t step) {
  T sum(0);
  for (std::int64_t i = 0; i < end; i += step) sum += y[i] * dy[i];
  for (std::int64_t i = 0; i < end; i += step) dx[i] = y[i] * (dy[i] - sum);
}
// dx = dy − eʸ · Σ dy
template <typename T>
void log_softmax_grad_line(const T* y, const T* dy, T* dx, std::int64_t end, std::int64_t step) {
  T sum(0);
  for (std::int64_t i = 0; i < end; i += step) sum += dy[i];
  for (std::int64_t i = 0; i < end; i += step) dx[i] = dy[i] - std::exp(y[i]) * sum;
}

template <typename T>
class ForwardKernel final : public Kernel {
 public:
  using Line = void (*)(const T* x, T* y, std::int64_t end, std::int64_t step);
  ForwardKernel(const KernelInit& init, Line line) : axis_(init.attr<std::int64_t>("axis")), line_(line) {}
  void compute(KernelContext& context) override {
    const View view = view_of(context.input(0).shape(), axis_);
    const T* x = context.input(0).data<T>();
    T* y = context.output(0).data<T>();
    for_lines(view, [&](std::int64_t at) { line_(x + at, y + at, view.count * view.inner, view.inner); });
  }

 private:
  std::int64_t axis_;
  Line line_;
};

template <typename T>
class BackwardKernel final : public Kernel {
 public:
  using Line = void (*)(const T* y, const T* dy, T* dx, std::int64_t end, std::int64_t step);
  BackwardKernel(const KernelInit& init, Line line) : axis_(init.attr<std::int64_t>("axis")), line_(line) {}
  void compute(KernelContext& context) override {
    const View view = view_of(context.input(0).shape(), axis_);
    const T *y = context.input(0).data<T>(), *dy = context.input(1).data<T>();
    T* dx = context.output(0).data<T>();
    for_lines(view,
              [&](std::int64_t at) { line_(y + at, dy + at, dx + at, view.count * view.inner, view.inner); });
  }

 private:
  std::int64_t axis_;
  Line line_;
};

template <template <typename> class K, typename T>
RegisterKernel plain(const char* op, DType type, typename K<T>::Line line) {
  return RegisterKernel(op, "CPU", {type}, [line](KernelInit& init) -> std::unique_ptr<Kernel> {
    return std::make_unique<K<T>>(init, line);
  });
}

const RegisterKernel activation_kernels[] = {
    {"Softmax", "CPU", {DType::f32}, make_onednn<dnnl::softmax_forward>, 1},
    plain<ForwardKernel, float>("Softmax", DType::f32, softmax_line<float>),
    plain<ForwardKernel, double>("Softmax", DType::f64, softmax_line<double>),
    {"SoftmaxGrad", "CPU", {DType::f32}, make_onednn_grad<dnnl::softmax_forward, dnnl::softmax_backward>, 1},
    plain<BackwardKernel, float>("SoftmaxGrad", DType::f32, softmax_grad_line<float>),
    plain<BackwardKernel, double>("SoftmaxGrad", DType::f64, softmax_grad_line<double>),
    // Not oneDNN's: its logarithm is off by 1e-6 and more.
    plain<ForwardKernel, float>("LogSoftmax", DType::f32, log_softmax_line<float>),
    plain<ForwardKernel, double>("LogSoftmax", DType::f64, log_softmax_line<double>),
    {"LogSoftmaxGrad",
     "CPU",
     {DType::f32},
     make_onednn_grad<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>,
     1},
    plain<BackwardKernel, float>("LogSoftmaxGrad", DType::f32, log_softmax_grad_line<float>),
    plain<BackwardKernel, double>("LogSoftmaxGrad", DType::f64, log_softmax_grad_line<double>),
};

// One word of a block of four for each element: element i of a call comes from block (position of the call) +
// i / 4, whichever thread makes it.
template <typename T>
class Dropout final : public Kernel {
 public:
  explicit Dropout(const KernelInit& init)
      : scale_(static_cast<T>(1 / (1 - init.attr<double>("rate")))),
        first_kept_(detail::first_kept_word(init.attr<double>("rate"))) {}

  void compute(KernelContext& context) override {
    const T* x = context.input(0).data<T>();
    T* y = context.output(0).data<T>();
    std::uint8_t* kept = context.output(1).data<std::uint8_t>();
    const std::int64_t elements = context.input(0).elements(), blocks = (elements + 3) / 4;
    RandomState& state = context.random();
    const std::uint64_t first = state.reserve(static_cast<std::uint64_t>(blocks));
    const detail::PhiloxBlocks philox(state.seed(), detail::dropout_seed(state.op_seed()));
    parallel_for(blocks, 1024, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t block = begin; block < end; ++block) {
        const auto words = philox.block(first + static_cast<std::uint64_t>(block));
        const std::int64_t last = std::min<std::int64_t>(4 * block + 4, elements);
        for (std::int64_t i = 4 * block; i < last; ++i) {
          kept[i] = words[static_cast<std::size_t>(i % 4)] >= first_kept_;
          y[i] = kept[i] != 0 ? x[i] * scale_ : T(0);
        }
      }
    });
  }

 private:
  T scale_;
  std::uint64_t first_kept_;
};

template <typename T>
class DropoutGrad final : public Kernel {
 public:
  explicit DropoutGrad(const KernelInit& init)
      : scale_(static_cast<T>(1 / (1 - init.attr<double>("rate")))) {}

  void compute(KernelContext& context) override {
    const T* dy = context.input(0).data<T>();
    const std::uint8_t* kept = context.input(1).data<std::uint8_t>();
    T* dx = context.output(0).data<T>();
    const T scale = scale_;
    parallel_for(context.output(0).elements(), kElementGrain, [&](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) dx[i] = kept[i] != 0 ? dy[i] * scale : T(0);
    });
  }

 private:
  T scale_;
};

const RegisterKernel dropout_f32("Dropout", "CPU", {DType::f32}, make_kernel<Dropout<float>>);
const RegisterKernel dropout_f64("Dropout", "CPU", {DType::f64}, make_kernel<Dropout<double>>);
const RegisterKernel dropout_grad_f32("DropoutGrad", "CPU", {DType::f32}, make_kernel<DropoutGrad<float>>);
const RegisterKernel dropout_grad_f64("DropoutGrad", "CPU", {DType::f64}, make_kernel<DropoutGrad<double>>);

}  // namespace

}  // namespace kolo
