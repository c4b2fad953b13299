// Kernels that move elements, or change their type, without computing.
#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/cuda/launch_moves.h>
#include <kolo/core/kernels/elements/binary.h>
#include <kolo/core/kernels/elements/cast.h>
#include <kolo/core/kernels/elements/small_float.h>
#include <kolo/core/kernels/cuda/run.cuh>

namespace kolo::cuda {
namespace {

using elements::divide;
using elements::extent;
using elements::offsets_at;

template <typename T>
struct Tag {
  using type = T;
};

// Calls run(Tag<unsigned number of so many bytes>).
template <typename Run>
cudaError_t with_bits(int bytes, const Run& run) {
  switch (bytes) {
    case 1: return run(Tag<std::uint8_t>());
    case 2: return run(Tag<std::uint16_t>());
    case 4: return run(Tag<std::uint32_t>());
    case 8: return run(Tag<std::uint64_t>());
    default: return cudaErrorInvalidValue;
  }
}

template <typename Run>
cudaError_t with_type(ElementType type, const Run& run) {
  switch (type) {
    case ElementType::f32: return run(Tag<float>());
    case ElementType::f64: return run(Tag<double>());
    case ElementType::i32: return run(Tag<std::int32_t>());
    case ElementType::i64: return run(Tag<std::int64_t>());
    case ElementType::boolean: return run(Tag<bool>());
    case ElementType::u8: return run(Tag<std::uint8_t>());
    case ElementType::i8: return run(Tag<std::int8_t>());
    case ElementType::f16: return run(Tag<elements::F16>());
    case ElementType::bf16: return run(Tag<elements::Bf16>());
  }
  return cudaErrorInvalidValue;
}

template <typename Run>
cudaError_t with_index(ElementType type, const Run& run) {
  switch (type) {
    case ElementType::i32: return run(Tag<std::int32_t>());
    case ElementType::i64: return run(Tag<std::int64_t>());
    default: return cudaErrorInvalidValue;
  }
}

template <typename Bits>
struct FillWork {
  Bits* target;
  Bits value;
  std::int64_t elements;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { target[i] = value; }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(target, elements);
  }
};

template <typename Bits>
struct SelectWork {
  const bool* condition;
  const Bits* a;
  const Bits* b;
  Bits* y;
  Walk<3> walk;
  std::int64_t elements;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    const elements::Offsets<3> offsets = offsets_at(walk, i);
    y[i] = condition[offsets.at[0]] ? a[offsets.at[1]] : b[offsets.at[2]];
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(condition, extent(walk, 0));
    visit(a, extent(walk, 1));
    visit(b, extent(walk, 2));
    visit(y, elements);
  }
};

template <typename From, typename To>
struct CastWork {
  const From* x;
  To* y;
  std::int64_t elements;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { y[i] = elements::Cast<To>()(x[i]); }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(x, elements);
    visit(y, elements);
  }
};

struct ExpandWork : ExpandArguments {
  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { dx[i] = dy[offsets_at(walk, i).at[0]] / divisor; }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(dy, extent(walk, 0));
    visit(dx, elements);
  }
};

template <typename Bits>
struct MoveWork {
  Bits* y;
  const Bits* x;
  Walk<2> walk;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    const elements::Offsets<2> offsets = offsets_at(walk, i);
    y[offsets.at[0]] = x[offsets.at[1]];
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit_from_lowest(visit, y, 0);
    visit_from_lowest(visit, x, 1);
  }

 private:
  template <typename Visit, typename Pointer>
  void visit_from_lowest(const Visit& visit, Pointer& first, int operand) {
    std::int64_t below = 0, elements = 1;
    for (int axis = 0; axis < walk.rank; ++axis) {
      const std::int64_t reach = (walk.dims[axis] - 1) * walk.strides[operand][axis];
      if (reach < 0) below -= reach;
      elements += reach < 0 ? -reach : reach;
    }
    Pointer lowest = first - below;
    visit(lowest, elements);
    first = lowest + below;
  }
};

// The row that an index names, −1 where there is none.
template <typename Index>
struct RowNumbers {
  const Index* indices;
  std::int64_t count;
  std::int64_t rows;
  BadValue* bad;

  explicit RowNumbers(const Rows& of)
      : indices(static_cast<const Index*>(of.indices)), count(of.count), rows(of.rows), bad(of.bad) {}
  KOLO_HOST_DEVICE bool names_row(std::int64_t i) const { return indices[i] >= 0 && indices[i] < rows; }
  KOLO_HOST_DEVICE void note(std::int64_t i) const {
    if (!names_row(i)) elements::note_bad_value(bad, i, static_cast<std::int64_t>(indices[i]));
  }
};

// Of rows without elements, whose indices no other work looks at.
template <typename Index>
struct NoteWork {
  RowNumbers<Index> numbers;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const { numbers.note(i); }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(numbers.indices, numbers.count);
  }
};
template <typename Index>
cudaError_t note_rows(cudaStream_t stream, const Rows& rows) {
  return run_each("note_rows", stream, rows.count, NoteWork<Index>{RowNumbers<Index>(rows)});
}

template <typename Index, typename Bits>
struct GatherWork {
  RowNumbers<Index> numbers;
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
    visit(numbers.indices, numbers.count);
    visit(x, outer * numbers.rows * inner);
    visit(y, outer * numbers.count * inner);
  }
};

struct ZeroAndAdd {
  static constexpr bool kFromZero = true;
  KOLO_HOST_DEVICE float operator()(float a, float b) const { return a + b; }
};
struct AddTo : elements::Add {
  static constexpr bool kFromZero = false;
};
struct SubFrom : elements::Sub {
  static constexpr bool kFromZero = false;
};
struct Replace {
  static constexpr bool kFromZero = false;
  template <typename T>
  KOLO_HOST_DEVICE T operator()(T, T b) const {
    return b;
  }
};

// A team for each row of y goes through all indices: rows are added in their order, and no two threads write
// to one place.
template <typename Join, typename Index, typename T>
struct ScatterWork {
  RowNumbers<Index> numbers;
  const T* x;
  T* y;
  std::int64_t outer;
  std::int64_t inner;

  template <typename Team>
  KOLO_HOST_DEVICE void operator()(const Team& team, std::int64_t line) const {
    const auto [block, row] = divide(line, numbers.rows);
    T* const to = y + line * inner;
    if (Join::kFromZero)
      for (std::int64_t j = team.lane(); j < inner; j += team.lanes()) to[j] = T(0);
    if (line == 0)
      for (std::int64_t i = team.lane(); i < numbers.count; i += team.lanes()) numbers.note(i);
    for (std::int64_t i = 0; i < numbers.count; ++i) {
      if (numbers.indices[i] != row) continue;
      const T* const from = x + (block * numbers.count + i) * inner;
      for (std::int64_t j = team.lane(); j < inner; j += team.lanes()) to[j] = Join()(to[j], from[j]);
    }
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(numbers.indices, numbers.count);
    visit(x, outer * numbers.count * inner);
    visit(y, outer * numbers.rows * inner);
  }
};

template <typename Join, typename T>
cudaError_t scatter(cudaStream_t stream, const ScatterArguments& arguments) {
  const Rows& rows = arguments.rows;
  return with_index(rows.index_type, [&](auto index) {
    using Index = typename decltype(index)::type;
    if (rows.outer * rows.rows == 0) return note_rows<Index>(stream, rows);
    return run_rows("scatter", stream, rows.outer * rows.rows,
                    ScatterWork<Join, Index, T>{RowNumbers<Index>(rows), static_cast<const T*>(arguments.x),
                                                static_cast<T*>(arguments.y), rows.outer, rows.inner});
  });
}

template <typename Index, typename Bits>
struct OneHotWork {
  const Index* indices;
  Bits* y;
  Bits on;
  Bits off;
  std::int64_t outer;
  std::int64_t depth;
  std::int64_t inner;

  KOLO_HOST_DEVICE void operator()(std::int64_t i) const {
    const auto [line, column] = divide(i, inner);
    const auto [block, place] = divide(line, depth);
    y[i] = static_cast<std::int64_t>(indices[block * inner + column]) == place ? on : off;
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(indices, outer * inner);
    visit(y, outer * depth * inner);
  }
};

template <typename Index>
cudaError_t one_hot(cudaStream_t stream, const OneHotArguments& arguments) {
  return with_bits(arguments.bytes_per_element, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    return run_each(
        "one_hot", stream, arguments.outer * arguments.depth * arguments.inner,
        OneHotWork<Index, Bits>{static_cast<const Index*>(arguments.indices), static_cast<Bits*>(arguments.y),
                                static_cast<Bits>(arguments.on_bits), static_cast<Bits>(arguments.off_bits),
                                arguments.outer, arguments.depth, arguments.inner});
  });
}

}  // namespace

cudaError_t launch_fill(cudaStream_t stream, const FillArguments& arguments) {
  return with_bits(arguments.bytes_per_element, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    return run_each("fill", stream, arguments.elements,
                    FillWork<Bits>{static_cast<Bits*>(arguments.target),
                                   static_cast<Bits>(arguments.value_bits), arguments.elements});
  });
}

cudaError_t launch_select(cudaStream_t stream, const SelectArguments& arguments) {
  return with_bits(arguments.bytes_per_element, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    return run_each("select", stream, arguments.elements,
                    SelectWork<Bits>{arguments.condition, static_cast<const Bits*>(arguments.a),
                                     static_cast<const Bits*>(arguments.b), static_cast<Bits*>(arguments.y),
                                     arguments.walk, arguments.elements});
  });
}

cudaError_t launch_cast(cudaStream_t stream, const CastArguments& arguments) {
  return with_type(arguments.from, [&](auto from) {
    return with_type(arguments.to, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      return run_each("cast", stream, arguments.elements,
                      CastWork<From, To>{static_cast<const From*>(arguments.x), static_cast<To*>(arguments.y),
                                         arguments.elements});
    });
  });
}

cudaError_t launch_expand(cudaStream_t stream, const ExpandArguments& arguments) {
  return run_each("expand", stream, arguments.elements, ExpandWork{arguments});
}

cudaError_t launch_move(cudaStream_t stream, const MoveArguments& arguments) {
  return with_bits(arguments.bytes_per_element, [&](auto tag) {
    using Bits = typename decltype(tag)::type;
    return run_each("move", stream, arguments.elements,
                    MoveWork<Bits>{static_cast<Bits*>(arguments.y), static_cast<const Bits*>(arguments.x),
                                   arguments.walk});
  });
}

cudaError_t launch_gather(cudaStream_t stream, const GatherArguments& arguments) {
  const Rows& rows = arguments.rows;
  return with_index(rows.index_type, [&](auto index) {
    return with_bits(arguments.bytes_per_element, [&](auto tag) {
      using Index = typename decltype(index)::type;
      using Bits = typename decltype(tag)::type;
      if (rows.outer * rows.inner == 0) return note_rows<Index>(stream, rows);
      return run_each("gather", stream, rows.outer * rows.count * rows.inner,
                      GatherWork<Index, Bits>{RowNumbers<Index>(rows), static_cast<const Bits*>(arguments.x),
                                              static_cast<Bits*>(arguments.y), rows.outer, rows.inner});
    });
  });
}

cudaError_t launch_scatter(cudaStream_t stream, const ScatterArguments& arguments) {
  switch (arguments.scatter) {
    case Scatter::sum: return scatter<ZeroAndAdd, float>(stream, arguments);
    case Scatter::add: return scatter<AddTo, float>(stream, arguments);
    case Scatter::sub: return scatter<SubFrom, float>(stream, arguments);
    case Scatter::update:
      return with_bits(arguments.bytes_per_element, [&](auto tag) {
        return scatter<Replace, typename decltype(tag)::type>(stream, arguments);
      });
  }
  return cudaErrorInvalidValue;
}

cudaError_t launch_one_hot(cudaStream_t stream, const OneHotArguments& arguments) {
  switch (arguments.index_type) {
    case ElementType::i32: return one_hot<std::int32_t>(stream, arguments);
    case ElementType::i64: return one_hot<std::int64_t>(stream, arguments);
    case ElementType::u8: return one_hot<std::uint8_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
