#include <kolo/core/kernels/cpu/loops/blocked_loops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace kolo::detail {
namespace {

constexpr std::int64_t kPixels = 67;

template <typename T>
struct Plane {
  Plane(std::int64_t block, std::uint32_t seed) : elements(static_cast<std::size_t>(block * kPixels)) {
    std::minstd_rand random(seed);
    std::uniform_real_distribution<float> number(-1, 1);
    for (T& element : elements) element = T(number(random));
  }
  const T* data() const { return elements.data(); }
  T* data() { return elements.data(); }
  std::size_t bytes() const { return elements.size() * sizeof(T); }
  std::vector<T> elements;
};

// What rectifiers let through decides a sign: numbers next to 0 must get the sign that normalization gave
// them.
template <typename T>
void expect_masks_of_y(const BlockedLoops<T>& loops, std::int64_t block) {
  Plane<T> x(block, 1), y(block, 0), first(block, 2), second(block, 3);
  const auto channels = static_cast<std::size_t>(block);
  std::vector<float> center(channels), factor(channels), shift(channels), a(channels, 0.25f),
      b(channels, 0.5f);
  for (std::size_t c = 0; c < channels; ++c) {
    center[c] = 0.1f * std::sin(static_cast<float>(c));
    // Half of the factors are such that some results are as small as numbers get.
    factor[c] = c % 2 == 0 ? 1.7f - 0.05f * static_cast<float>(c) : 1e-39f;
    // The product of one pixel and the factor is rounded to this: what is left is the rounding's error.
    shift[c] = -(static_cast<float>(x.elements[(5 + c) % kPixels * channels + c]) - center[c]) * factor[c];
  }
  x.elements[3] = T(std::numeric_limits<float>::quiet_NaN());
  loops.affine(x.data(), center.data(), factor.data(), shift.data(), nullptr, true, y.data(), kPixels, block);
  const T* const seconds[] = {nullptr, second.data()};
  for (const T* const more : seconds) {
    const BlockedGradient<T> of_y{.first = first.data(), .second = more, .y = y.data()},
        of_x{.first = first.data(), .second = more, .factor = factor.data(), .shift = shift.data()};
    Plane<T> kept(block, 0), kept_of_x(block, 0), dx(block, 0), dx_of_x(block, 0);
    std::vector<double> sums(4 * channels);
    double* const of = sums.data();
    loops.gradient_sums(of_y, x.data(), center.data(), kept.data(), kPixels, block, of, of + block);
    loops.gradient_sums(of_x, x.data(), center.data(), kept_of_x.data(), kPixels, block, of + 2 * block,
                        of + 3 * block);
    EXPECT_EQ(std::memcmp(kept.data(), kept_of_x.data(), kept.bytes()), 0);
    EXPECT_EQ(std::memcmp(of, of + 2 * block, 2 * channels * sizeof(double)), 0);
    loops.gradient(of_y, x.data(), center.data(), factor.data(), a.data(), b.data(), dx.data(), kPixels,
                   block);
    loops.gradient(of_x, x.data(), center.data(), factor.data(), a.data(), b.data(), dx_of_x.data(), kPixels,
                   block);
    EXPECT_EQ(std::memcmp(dx.data(), dx_of_x.data(), dx.bytes()), 0);
    // The masks are what they are called.
    for (std::size_t i = 0; i < kept.elements.size(); ++i) {
      const float sum = static_cast<float>(first.elements[i]) +
                        (more == nullptr ? 0 : static_cast<float>(second.elements[i]));
      ASSERT_EQ(static_cast<float>(kept.elements[i]),
                static_cast<float>(y.elements[i]) > 0 ? static_cast<float>(T(sum)) : 0)
          << i;
    }
  }
}

TEST(BlockedLoops, MasksOfXAreThoseOfYInBlocks) {
  for (const std::int64_t block : {8, 16}) expect_masks_of_y(blocked_loops(block), block);
}

TEST(BlockedLoops, MasksOfXAreThoseOfYInChannelsLast) {
  for (const std::int64_t channels : {16, 528}) expect_masks_of_y(channels_last_loops<float>(), channels);
}

TEST(BlockedLoops, MasksOfXAreThoseOfYAsItIsStoredInBf16) {
  for (const std::int64_t channels : {16, 528}) expect_masks_of_y(channels_last_loops<BFloat16>(), channels);
}

}  // namespace
}  // namespace kolo::detail
