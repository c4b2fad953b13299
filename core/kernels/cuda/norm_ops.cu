#include <cmath>

#include <kolo/core/kernels/cuda/launch_norm_ops.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/elements/small_float.h>
#include <kolo/core/kernels/elements/unary.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using elements::SumFold;

struct Squared {
  KOLO_HOST_DEVICE double operator()(float x) const {
    return static_cast<double>(x) * static_cast<double>(x);
  }
};
struct TimesZero {
  KOLO_HOST_DEVICE double operator()(float x) const { return x * 0.0f; }
};

template <typename Of, typename T>
struct TermsWork {
  const T* x;
  double* partial;
  std::int64_t elements;
  std::int64_t parts;

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t part) const {
    const std::int64_t length = (elements + parts - 1) / parts, begin = part * length;
    const std::int64_t end = begin + length < elements ? begin + length : elements;
    double sum = 0;
    for (std::int64_t i = begin + team.lane(); i < end; i += team.lanes())
      sum += Of()(static_cast<float>(x[i]));
    sum = team.template fold<SumFold>(sum);
    if (team.lane() == 0) partial[part] = sum;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements);
    visit(partial, parts);
  }
};

template <typename Of, typename T>
cudaError_t terms(cudaStream_t stream, const TermsArguments& arguments) {
  return run_rows("terms", stream, arguments.parts,
                  TermsWork<Of, T>{static_cast<const T*>(arguments.x), arguments.partial, arguments.elements,
                                   arguments.parts});
}

template <typename Of>
cudaError_t terms_of_type(cudaStream_t stream, const TermsArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return terms<Of, float>(stream, arguments);
    case ElementType::f16: return terms<Of, elements::F16>(stream, arguments);
    case ElementType::bf16: return terms<Of, elements::Bf16>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

struct Root {
  KOLO_HOST_DEVICE float operator()(double sum) const { return static_cast<float>(std::sqrt(sum)); }
};
struct Half {
  KOLO_HOST_DEVICE float operator()(double sum) const { return static_cast<float>(sum / 2); }
};
struct IsZero {
  KOLO_HOST_DEVICE bool operator()(double sum) const { return sum == 0; }
};

template <typename Of, typename Result>
struct TotalWork {
  const double* partial;
  Result* y;
  std::int64_t parts;

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t) const {
    double sum = 0;
    for (std::int64_t i = team.lane(); i < parts; i += team.lanes()) sum += partial[i];
    sum = team.template fold<SumFold>(sum);
    if (team.lane() == 0) *y = Of()(sum);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(partial, parts);
    visit(y, 1);
  }
};

template <typename Of, typename Result>
cudaError_t total(cudaStream_t stream, const TotalArguments& arguments) {
  return run_rows(
      "total", stream, 1,
      TotalWork<Of, Result>{arguments.partial, static_cast<Result*>(arguments.y), arguments.parts});
}

struct CheckNumericsWork : CheckNumericsArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    if (kolo::elements::is_nan(x[i])) kolo::elements::note_bad_value(nan, i, 0);
    else if (kolo::elements::IsInf()(x[i])) kolo::elements::note_bad_value(infinity, i, 0);
    y[i] = x[i];
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements);
    visit(y, elements);
  }
};

}  // namespace

cudaError_t launch_terms(cudaStream_t stream, const TermsArguments& arguments) {
  switch (arguments.term) {
    case Term::square: return terms_of_type<Squared>(stream, arguments);
    case Term::times_zero: return terms_of_type<TimesZero>(stream, arguments);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_total(cudaStream_t stream, const TotalArguments& arguments) {
  switch (arguments.total) {
    case Total::root: return total<Root, float>(stream, arguments);
    case Total::half: return total<Half, float>(stream, arguments);
    case Total::is_zero: return total<IsZero, bool>(stream, arguments);
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_check_numerics(cudaStream_t stream, const CheckNumericsArguments& arguments) {
  return run_each("check_numerics", stream, arguments.elements, CheckNumericsWork{arguments});
}

}  // namespace kolo::cuda
