// What one core can do at most, compiled once for each instruction set and chosen at run time.
#pragma once

#include <cstdint>

namespace kolo::detail {

/// Fused multiply-adds on numbers in registers, `rounds` times as many as hide their latency. Returns the
/// multiplications and additions that were done; `sink` gets a number that depends on all of them.
double multiply_adds(std::int64_t rounds, float* sink);
/// a = b + factor · c
void triad(float* a, const float* b, const float* c, float factor, std::int64_t count);
/// "AVX3", "AVX2", …: Highway's name of the set that both use.
const char* instruction_set();

}  // namespace kolo::detail
