// Digits that kolo draws itself, for machines without MNIST: pen strokes with random distortion, thickness
// and noise.
#pragma once

#include <cstdint>
#include <span>

#include <kolo/models/dataset.h>

namespace kolo::models {

inline constexpr std::int64_t kGeneratedTrainDigits = 7000;
inline constexpr std::int64_t kGeneratedTestDigits = 1500;
inline constexpr std::uint64_t kGeneratedDigitsSeed = 1;

/// The digit that picture `index` of `seed` shows. Each run of ten indices from a multiple of ten holds every
/// digit once.
int generated_label(std::uint64_t seed, std::uint64_t index);

/// Draws `digit` as picture `index` of `seed` into 28×28 pixels, 0 is paper. The same bytes on every machine.
void draw_digit(int digit, std::uint64_t seed, std::uint64_t index, std::span<std::uint8_t, 784> pixels);

/// `count` pictures from index `first` on. Throws InvalidArgumentError if count < 1.
Dataset generated_digits(std::uint64_t seed, std::uint64_t first, std::int64_t count);

/// The default sets, which share no picture. The seed of a training run does not change them, as it does not
/// change MNIST.
Dataset generated_digits(Split split);

}  // namespace kolo::models
