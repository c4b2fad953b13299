// Rows by their numbers: read, and added up in the order in which they are named.
#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/cuda/row_places.cuh>
#include <kolo/core/kernels/cuda/run.cuh>
#include <kolo/core/kernels/cuda/types.cuh>

namespace kolo::cuda {
namespace {

using elements::divide;

template <typename Run>
cudaError_t with_row_numbers(const Rows& rows, const Run& run) {
  switch (rows.index_type) {
    case ElementType::i32: return run(RowNumbers<std::int32_t>(rows));
    case ElementType::i64: return run(RowNumbers<std::int64_t>(rows));
    default: return cudaErrorInvalidValue;
  }
}

// Of rows without elements, whose indices no other work looks at.
template <typename Numbers>
struct NoteWork {
  Numbers numbers;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { numbers.note(i); }
  template <typename Visit>
  void operands(const Visit& visit) {
    numbers.operands(visit);
  }
};
cudaError_t note_rows(cudaStream_t stream, const Rows& rows) {
  return with_row_numbers(rows, [&](auto numbers) {
    return run_each("note_rows", stream, rows.count, NoteWork<decltype(numbers)>{numbers});
  });
}

template <typename Numbers>
struct RowNumbersWork {
  Numbers numbers;
  std::uint32_t* row;
  std::uint32_t* place;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    numbers.note(i);
    row[i] = static_cast<std::uint32_t>(numbers.names_row(i) ? numbers.indices[i] : numbers.rows);
    place[i] = static_cast<std::uint32_t>(i);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    numbers.operands(visit);
    visit(row, numbers.count);
    visit(place, numbers.count);
  }
};

template <typename Numbers, typename Bits>
struct GatherWork {
  Numbers numbers;
  const Bits* x;
  Bits* y;
  std::int64_t outer;
  std::int64_t inner;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [line, column] = divide(i, inner);
    const auto [block, k] = divide(line, numbers.count);
    if (i == line * inner) numbers.note(k);
    y[i] = numbers.names_row(k) ? x[(block * numbers.rows + numbers.indices[k]) * inner + column] : Bits(0);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    numbers.operands(visit);
    visit(x, outer * numbers.rows * inner);
    visit(y, outer * numbers.count * inner);
  }
};

// kFromZero: of nothing but the rows of x. kAddsSum: which is added to what is there.
struct SumOfRows : elements::Add {
  static constexpr bool kFromZero = true, kAddsSum = false;
};
struct AddSumOfRows : elements::Add {
  static constexpr bool kFromZero = true, kAddsSum = true;
};
struct AddRows : elements::Add {
  static constexpr bool kFromZero = false, kAddsSum = false;
};
struct SubRows : elements::Sub {
  static constexpr bool kFromZero = false, kAddsSum = false;
};
struct LastRow {
  static constexpr bool kFromZero = false, kAddsSum = false;
  template <typename T>
  KOLO_HOST_DEVICE T operator()(T, T b) const {
    return b;
  }
};

// A team for some columns of each row of y: rows are added in the order in which they are named, and no two
// threads write to one place.
template <typename Join, typename Places, typename T>
struct ScatterWork {
  Places named;
  const T* x;
  T* y;
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t teams;  // for a row

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t number) const {
    if (number == 0) named.note_all(team);
    const auto [line, part] = divide(number, teams);
    const auto [block, unit] = divide(line, named.units());
    const std::int64_t row = named.row_of(unit);
    if (row < 0) return;
    const T* const from = x + block * named.count * inner;
    T* const to = y + (block * named.rows + row) * inner;
    const std::int64_t begin = part * kColumnsOfTeam, last = begin + kColumnsOfTeam;
    const std::int64_t end = last < inner ? last : inner;
    for (std::int64_t column = begin + team.lane(); column < end; column += kColumnsOfLane * team.lanes())
      add(team, unit, from, to, column, end);
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    named.operands(visit);
    visit(x, outer * named.count * inner);
    visit(y, outer * named.rows * inner);
  }

 private:
  template <typename Team>
  KOLO_HOST_DEVICE void add(const Team& team, std::int64_t unit, const T* from, T* to, std::int64_t first,
                            std::int64_t end) const {
    T sum[kColumnsOfLane];
    KOLO_DEVICE_UNROLL
    for (int c = 0; c < kColumnsOfLane; ++c)
      sum[c] = Join::kFromZero || first + c * team.lanes() >= end ? T(0) : to[first + c * team.lanes()];
    named.for_each(unit, [&](std::int64_t place) {
      const T* const row = from + place * inner;
      KOLO_DEVICE_UNROLL
      for (int c = 0; c < kColumnsOfLane; ++c)
        if (first + c * team.lanes() < end) sum[c] = Join()(sum[c], row[first + c * team.lanes()]);
    });
    KOLO_DEVICE_UNROLL
    for (int c = 0; c < kColumnsOfLane; ++c)
      if (first + c * team.lanes() < end) {
        T& made = to[first + c * team.lanes()];
        made = Join::kAddsSum ? Join()(made, sum[c]) : sum[c];
      }
  }
};

template <typename Join, typename T>
cudaError_t scatter(cudaStream_t stream, const ScatterArguments& arguments) {
  const Rows& rows = arguments.rows;
  const std::int64_t elements = rows.outer * rows.rows * rows.inner;
  if (elements == 0) return rows.sorted.numbers == nullptr ? note_rows(stream, rows) : cudaSuccess;
  if (Join::kFromZero && !Join::kAddsSum &&
      rows.sorted.numbers != nullptr) {  // which names no row that nobody adds to
    const cudaError_t code = launch_fill(
        stream,
        {.target = arguments.y, .value_bits = 0, .bytes_per_element = sizeof(T), .elements = elements});
    if (code != cudaSuccess) return code;
  }
  const std::int64_t teams = (rows.inner + kColumnsOfTeam - 1) / kColumnsOfTeam;
  return with_places(rows, [&](auto named) {
    return run_rows(
        "scatter", stream, rows.outer * named.units() * teams,
        ScatterWork<Join, decltype(named), T>{named, static_cast<const T*>(arguments.x),
                                              static_cast<T*>(arguments.y), rows.outer, rows.inner, teams});
  });
}

}  // namespace

cudaError_t launch_gather(cudaStream_t stream, const GatherArguments& arguments) {
  const Rows& rows = arguments.rows;
  if (rows.outer * rows.inner == 0) return note_rows(stream, rows);
  return with_row_numbers(rows, [&](auto numbers) {
    return with_bits(arguments.bytes_per_element, [&](auto tag) {
      using Bits = typename decltype(tag)::type;
      return run_each(
          "gather", stream, rows.outer * rows.count * rows.inner,
          GatherWork<decltype(numbers), Bits>{numbers, static_cast<const Bits*>(arguments.x),
                                              static_cast<Bits*>(arguments.y), rows.outer, rows.inner});
    });
  });
}

cudaError_t launch_scatter(cudaStream_t stream, const ScatterArguments& arguments) {
  switch (arguments.scatter) {
    case Scatter::sum: return scatter<SumOfRows, float>(stream, arguments);
    case Scatter::add: return scatter<AddRows, float>(stream, arguments);
    case Scatter::sub: return scatter<SubRows, float>(stream, arguments);
    case Scatter::add_sum: return scatter<AddSumOfRows, float>(stream, arguments);
    case Scatter::update:
      return with_bits(arguments.bytes_per_element, [&](auto tag) {
        return scatter<LastRow, typename decltype(tag)::type>(stream, arguments);
      });
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_row_numbers(cudaStream_t stream, const RowNumbersArguments& arguments) {
  return with_row_numbers(arguments.rows, [&](auto numbers) {
    return run_each("row_numbers", stream, arguments.rows.count,
                    RowNumbersWork<decltype(numbers)>{numbers, arguments.numbers, arguments.places});
  });
}

}  // namespace kolo::cuda
