#include <kolo/models/sample_contents.h>

#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

namespace kolo::models::detail {
namespace {

// Eight bytes at a time: arrays are larger than tables, and nothing is drawn by it.
std::uint64_t digest_of_words(std::span<const std::byte> bytes) {
  std::uint64_t digest = kDigestOfNothing;
  while (bytes.size() >= sizeof(digest)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    digest = (digest ^ word) * 0x9e3779b97f4a7c15;
    digest ^= digest >> 32;
    bytes = bytes.subspan(sizeof(word));
  }
  return digest_of_bytes(bytes, digest);
}

// Of numbers 0 to 1 that are pixels divided by 255 these pixels: both are the same to a model. Empty of
// others.
std::vector<std::byte> as_pixels(std::span<const float> numbers) {
  constexpr float kRounding = 1e-3F;
  std::vector<std::byte> pixels;
  pixels.reserve(numbers.size());
  for (const float number : numbers) {
    const float scaled = number * 255, whole = std::nearbyint(scaled);
    if (!(whole >= 0 && whole <= 255 && std::abs(scaled - whole) <= kRounding)) return {};
    pixels.push_back(static_cast<std::byte>(whole));
  }
  return pixels;
}

std::uint64_t digest_of_array_row(const Tensor& x, std::int64_t row) {
  const std::int64_t each = x.elements() / x.shape().dim(0);
  if (x.dtype() == DType::f32)
    if (const auto pixels = as_pixels(
            x.span<float>().subspan(static_cast<std::size_t>(row * each), static_cast<std::size_t>(each)));
        !pixels.empty())
      return digest_of_words(pixels);
  const std::int64_t bytes = x.bytes() / x.shape().dim(0);
  return digest_of_words(std::span(x.raw() + row * bytes, static_cast<std::size_t>(bytes)));
}

}  // namespace

std::uint64_t digest_of_bytes(std::span<const std::byte> bytes, std::uint64_t before) {
  for (const std::byte one : bytes) before = (before ^ std::to_integer<std::uint64_t>(one)) * 0x100000001b3;
  return before;
}

SampleContents contents_of_rows(std::int64_t count, std::function<std::uint64_t(std::int64_t row)> digest) {
  const auto made = std::make_shared<std::vector<std::uint64_t>>();
  return {.count = count, .digest = [count, made, digest = std::move(digest)](std::int64_t row) {
            made->reserve(static_cast<std::size_t>(count));
            while (std::ssize(*made) < count) made->push_back(digest(std::ssize(*made)));
            return (*made)[static_cast<std::size_t>(row)];
          }};
}

SampleContents contents_of_array(const Tensor& x) {
  SampleContents contents =
      contents_of_rows(x.shape().dim(0), [x](std::int64_t row) { return digest_of_array_row(x, row); });
  contents.numbers = {x};
  return contents;
}

}  // namespace kolo::models::detail
