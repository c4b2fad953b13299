#include <kolo/core/ops/slice_spec.h>

#include <algorithm>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

bool has(std::int64_t mask, std::size_t entry) { return (mask >> entry & 1) != 0; }

class Resolver {
 public:
  Resolver(const SliceSpec& spec, const Shape& x) : spec_(spec), x_(x) {}

  ResolvedSlice run() {
    const std::int64_t free = free_dimensions();
    bool ellipsis = false;
    for (std::size_t entry = 0; entry < spec_.begin.size(); ++entry) {
      if (has(spec_.masks.ellipsis, entry)) {
        ellipsis = true;
        for (std::int64_t i = 0; i < free; ++i) take_whole();
      } else if (has(spec_.masks.new_axis, entry)) {
        dims_.push_back(1);
      } else if (has(spec_.masks.shrink_axis, entry)) {
        take_element(entry);
      } else {
        take_range(entry);
      }
    }
    // Without an ellipsis one stands behind the last entry.
    for (std::int64_t i = 0; !ellipsis && i < free; ++i) take_whole();
    slice_.result = Shape(std::move(dims_));
    return std::move(slice_);
  }

 private:
  // Dimensions of x that no entry but an ellipsis is for.
  std::int64_t free_dimensions() const {
    std::int64_t taken = 0, ellipses = 0;
    for (std::size_t entry = 0; entry < spec_.begin.size(); ++entry) {
      if (has(spec_.masks.ellipsis, entry)) ++ellipses;
      else if (!has(spec_.masks.new_axis, entry)) ++taken;
    }
    if (ellipses > 1)
      throw InvalidArgumentError("strided_slice: {} ellipses were given; one is allowed", ellipses);
    if (taken > x_.rank())
      throw InvalidArgumentError("strided_slice: x is {}, of {} dimensions, but {} indices were given", x_,
                                 x_.rank(), taken);
    return x_.rank() - taken;
  }

  int axis() const { return static_cast<int>(slice_.begin.size()); }

  void take(std::int64_t begin, std::int64_t stride, std::int64_t count) {
    slice_.begin.push_back(begin);
    slice_.stride.push_back(stride);
    slice_.count.push_back(count);
  }

  void take_whole() {
    dims_.push_back(x_.dim(axis()));
    take(0, 1, dims_.back());
  }

  void take_element(std::size_t entry) {
    const std::int64_t dim = x_.dim(axis()), asked = spec_.begin[entry];
    if (spec_.strides[entry] <= 0)
      throw InvalidArgumentError(
          "strided_slice: the stride of the single element {} is {}; it must be positive", asked,
          spec_.strides[entry]);
    const std::int64_t index = asked < 0 && dim >= 0 ? asked + dim : asked;
    if (dim >= 0 && (index < 0 || index >= dim))
      throw InvalidArgumentError("slice index {} of dimension {} out of bounds: x is {}", asked, axis(), x_);
    take(index, 1, 1);
  }

  void take_range(std::size_t entry) {
    const std::int64_t dim = x_.dim(axis()), stride = spec_.strides[entry];
    if (stride == 0) throw InvalidArgumentError("strided_slice: strides[{}] must be non-zero", entry);
    if (dim < 0) {
      dims_.push_back(-1);
      return take(0, stride, -1);
    }
    // Backwards the elements end before 0, at −1.
    const std::int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? dim : dim - 1;
    const auto place = [&](std::int64_t asked) {
      return std::clamp(asked < 0 ? asked + dim : asked, lowest, highest);
    };
    const std::int64_t first = stride > 0 ? lowest : highest, last = stride > 0 ? highest : lowest;
    const std::int64_t begin = has(spec_.masks.begin, entry) ? first : place(spec_.begin[entry]);
    const std::int64_t end = has(spec_.masks.end, entry) ? last : place(spec_.end[entry]);
    const std::int64_t way = stride > 0 ? end - begin : begin - end;
    // Rounded up; strides longer than the way, up to −2^63, take the first element alone.
    const std::int64_t count = way <= 0 ? 0 : 1 + (stride > 0 ? (way - 1) / stride : -((way - 1) / stride));
    dims_.push_back(count);
    // Where there is no second element the way to it, and without a first its place, must not overflow.
    take(count > 0 ? begin : 0, count > 1 ? stride : 1, count);
  }

  const SliceSpec& spec_;
  const Shape& x_;
  ResolvedSlice slice_;
  std::vector<std::int64_t> dims_;
};

}  // namespace

ResolvedSlice resolve_slice(const SliceSpec& spec, const Shape& x) { return Resolver(spec, x).run(); }

}  // namespace kolo::detail
