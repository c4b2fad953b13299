// Kernels that move elements, or change their type, without computing.
#include <kolo/core/kernels/cuda/launch_elementwise.h>
#include <kolo/core/kernels/cuda/launch_moves.h>
#include <kolo/core/kernels/elements/cast.h>
#include <kolo/core/kernels/cuda/run.cuh>
#include <kolo/core/kernels/cuda/types.cuh>

namespace kolo::cuda {
namespace {

using elements::divide;
using elements::extent;
using elements::offsets_at;

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

cudaError_t launch_one_hot(cudaStream_t stream, const OneHotArguments& arguments) {
  switch (arguments.index_type) {
    case ElementType::i32: return one_hot<std::int32_t>(stream, arguments);
    case ElementType::i64: return one_hot<std::int64_t>(stream, arguments);
    case ElementType::u8: return one_hot<std::uint8_t>(stream, arguments);
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
