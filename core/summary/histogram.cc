#include <kolo/core/summary/histogram.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();

// TensorFlow's core/lib/histogram: the same multiplications, so that limits are equal in every bit.
std::vector<double> make_limits() {
  std::vector<double> limits;
  for (double limit = 1.0e-12; limit < 1.0e20; limit *= 1.1) limits.push_back(limit);
  limits.push_back(kLargest);
  const std::size_t positive = limits.size();
  limits.push_back(0);
  for (std::size_t i = 0; i < positive; ++i) limits.push_back(-limits[i]);
  std::sort(limits.begin(), limits.end());
  return limits;
}

const std::vector<double>& limits() {
  static const std::vector<double> made = make_limits();
  return made;
}

template <typename T>
void add_all(Histogram& histogram, const Tensor& values, const std::string& name) {
  for (const T& element : values.span<T>()) {
    double value = 0;
    if constexpr (std::is_arithmetic_v<T>) value = static_cast<double>(element);
    else value = static_cast<float>(element);
    if (std::isnan(value)) throw InvalidArgumentError("Nan in summary histogram for: {}", name);
    if (std::isinf(value)) throw InvalidArgumentError("Infinity in summary histogram for: {}", name);
    histogram.add(value);
  }
}

}  // namespace

Histogram::Histogram() : counts_(limits().size()), min_(kLargest), max_(-kLargest) {}

void Histogram::add(double value) {
  const auto bucket = std::upper_bound(limits().begin(), limits().end() - 1, value) - limits().begin();
  counts_[static_cast<std::size_t>(bucket)] += 1;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  num_ += 1;
  sum_ += value;
  sum_squares_ += value * value;
}

void Histogram::add(const Tensor& values, const std::string& name) {
  switch (values.dtype()) {
    case DType::f32: return add_all<float>(*this, values, name);
    case DType::f64: return add_all<double>(*this, values, name);
    case DType::i32: return add_all<std::int32_t>(*this, values, name);
    case DType::i64: return add_all<std::int64_t>(*this, values, name);
    case DType::boolean: return add_all<bool>(*this, values, name);
    case DType::u8: return add_all<std::uint8_t>(*this, values, name);
    case DType::i8: return add_all<std::int8_t>(*this, values, name);
    case DType::f16: return add_all<Half>(*this, values, name);
    case DType::bf16: return add_all<BFloat16>(*this, values, name);
    case DType::string: break;
  }
  throw InvalidArgumentError("a histogram of texts was asked for, for {}; it takes numbers", name);
}

std::vector<Histogram::Bucket> Histogram::buckets() const {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i] <= 0)
      while (i + 1 < counts_.size() && counts_[i + 1] <= 0) ++i;
    buckets.push_back({limits()[i], counts_[i]});
  }
  return buckets;
}

}  // namespace kolo::detail
