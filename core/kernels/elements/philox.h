// Philox 4×32-10: random numbers as a function of a counter, so that any thread can make any of them.
#pragma once

#include <array>
#include <cstdint>

#include <kolo/core/kernels/elements/host_device.h>

namespace kolo::detail {

/// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11; ten rounds.
KOLO_HOST_DEVICE inline std::array<std::uint32_t, 4> philox_4x32_10(std::array<std::uint32_t, 4> counter,
                                                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;  // the golden ratio
    key[1] += 0xBB67AE85;  // √3 − 1
  }
  return counter;
}

/// The blocks of four words that belong to a pair of seeds: the graph's is the key, the op's the upper half
/// of the counter, so that no two ops of a graph share a block.
class PhiloxBlocks {
 public:
  KOLO_HOST_DEVICE PhiloxBlocks(std::uint64_t seed, std::uint64_t op_seed) : seed_(seed), op_seed_(op_seed) {}
  KOLO_HOST_DEVICE std::array<std::uint32_t, 4> block(std::uint64_t position) const {
    return philox_4x32_10({low(position), high(position), low(op_seed_), high(op_seed_)},
                          {low(seed_), high(seed_)});
  }

 private:
  KOLO_HOST_DEVICE static std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
  KOLO_HOST_DEVICE static std::uint32_t high(std::uint64_t value) {
    return static_cast<std::uint32_t>(value >> 32);
  }
  std::uint64_t seed_;
  std::uint64_t op_seed_;
};

}  // namespace kolo::detail
