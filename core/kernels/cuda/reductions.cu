#include <type_traits>

#include <kolo/core/kernels/cuda/launch_reductions.h>
#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/folds.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

template <typename T, typename A>
KOLO_HOST_DEVICE T finished(A folded, double divisor) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(folded / static_cast<A>(divisor));
  else return static_cast<T>(folded);
}

// A team for each part of a result.
template <typename Fold, typename T>
struct ReduceWork : ReduceArguments {
  using A = typename Fold::template Accumulator<T>;
  const T* from;
  T* to;           // of results in one part
  A* partial_for;  // of others

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t unit) const {
    const auto [result, part] = elements::divide(unit, parts);
    const std::int64_t length = (count + parts - 1) / parts, begin = part * length;
    const std::int64_t end = begin + length < count ? begin + length : count;
    const T* const x = from + elements::offsets_at(kept, result).at[0];
    A value = Fold::template start<T>();
    for (std::int64_t j = begin + team.lane(); j < end; j += team.lanes())
      value = Fold::join(value, static_cast<A>(x[elements::offsets_at(folded, j).at[0]]));
    value = team.template fold<Fold>(value);
    if (team.lane() != 0) return;
    if (parts == 1) to[result] = finished<T>(value, divisor);
    else partial_for[unit] = value;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    if (count > 0) visit(from, elements::extent(kept, 0) + elements::extent(folded, 0) - 1);
    if (parts == 1) visit(to, results);
    else visit(partial_for, results * parts);
  }
};

template <typename Fold, typename T>
struct JoinPartsWork {
  using A = typename Fold::template Accumulator<T>;
  const A* partial;
  T* y;
  std::int64_t results;
  int parts;
  double divisor;

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t result) const {
    A value = Fold::template start<T>();
    for (int part = team.lane(); part < parts; part += team.lanes())
      value = Fold::join(value, partial[result * parts + part]);
    value = team.template fold<Fold>(value);
    if (team.lane() == 0) y[result] = finished<T>(value, divisor);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(partial, results * parts);
    visit(y, results);
  }
};

template <typename Fold, typename T>
cudaError_t reduce(cudaStream_t stream, const ReduceArguments& of) {
  using Work = ReduceWork<Fold, T>;
  using A = typename Work::A;
  T* const y = static_cast<T*>(of.y);
  const Work work = {of, static_cast<const T*>(of.x), y, static_cast<A*>(of.partial)};
  const cudaError_t code = of.by_columns ? run_columns("reduce", stream, of.results, of.parts, work)
                                         : run_rows("reduce", stream, of.results * of.parts, work);
  if (code != cudaSuccess || of.parts == 1) return code;
  return run_rows("reduce_parts", stream, of.results,
                  JoinPartsWork<Fold, T>{work.partial_for, y, of.results, of.parts, of.divisor});
}

template <typename T>
cudaError_t reduce_numbers(cudaStream_t stream, const ReduceArguments& arguments) {
  switch (arguments.fold) {
    case Fold::sum: return reduce<elements::SumFold, T>(stream, arguments);
    case Fold::product: return reduce<elements::ProductFold, T>(stream, arguments);
    case Fold::maximum: return reduce<elements::MaxFold, T>(stream, arguments);
    case Fold::minimum: return reduce<elements::MinFold, T>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t reduce_booleans(cudaStream_t stream, const ReduceArguments& arguments) {
  switch (arguments.fold) {
    case Fold::any: return reduce<elements::AnyFold, bool>(stream, arguments);
    case Fold::all: return reduce<elements::AllFold, bool>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

// A thread for each result: lines are as short as a model has classes.
template <typename Better, typename T>
struct PositionWork {
  const T* x;
  std::int64_t* y;
  std::int64_t results;
  std::int64_t count;
  std::int64_t inner;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [outer, column] = elements::divide(i, inner);
    const T* const line = x + outer * count * inner + column;
    std::int64_t best = 0;
    T best_value = line[0];
    for (std::int64_t k = 1; k < count; ++k) {
      const T value = line[k * inner];
      if (Better()(value, best_value)) {
        best = k;
        best_value = value;
      }
    }
    y[i] = best;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, results * count);
    visit(y, results);
  }
};

template <typename Better, typename T>
cudaError_t position_of(cudaStream_t stream, const PositionArguments& of) {
  const std::int64_t results = of.outer * of.inner;
  return run_each("position", stream, results,
                  PositionWork<Better, T>{static_cast<const T*>(of.x), of.y, results, of.count, of.inner});
}

template <typename T>
cudaError_t position(cudaStream_t stream, const PositionArguments& arguments) {
  return arguments.smallest ? position_of<elements::Less, T>(stream, arguments)
                            : position_of<elements::Greater, T>(stream, arguments);
}

}  // namespace

cudaError_t launch_reduce(cudaStream_t stream, const ReduceArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return reduce_numbers<float>(stream, arguments);
    case ElementType::i64: return reduce_numbers<std::int64_t>(stream, arguments);
    case ElementType::boolean: return reduce_booleans(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

cudaError_t launch_position(cudaStream_t stream, const PositionArguments& arguments) {
  switch (arguments.type) {
    case ElementType::f32: return position<float>(stream, arguments);
    case ElementType::i64: return position<std::int64_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
