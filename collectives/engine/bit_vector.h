// One bit for each slot of the response cache.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include <kolo/collectives/engine/wire.h>

namespace kolo::detail {

class BitVector {
 public:
  void set(int bit) {
    const auto word = static_cast<std::size_t>(bit) / 64;
    if (words_.size() <= word) words_.resize(word + 1, 0);
    words_[word] |= mask(bit);
  }
  void clear(int bit) {
    const auto word = static_cast<std::size_t>(bit) / 64;
    if (word < words_.size()) words_[word] &= ~mask(bit);
  }
  void clear_all() { words_.assign(words_.size(), 0); }
  bool test(int bit) const {
    const auto word = static_cast<std::size_t>(bit) / 64;
    return word < words_.size() && (words_[word] & mask(bit)) != 0;
  }
  bool any() const {
    for (const auto word : words_)
      if (word != 0) return true;
    return false;
  }
  std::size_t count() const {
    std::size_t bits = 0;
    for (const auto word : words_) bits += static_cast<std::size_t>(std::popcount(word));
    return bits;
  }
  void and_with(const BitVector& other) {
    if (words_.size() > other.words_.size()) words_.resize(other.words_.size());
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }
  void or_with(const BitVector& other) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size(), 0);
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void remove(const BitVector& other) {
    for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
      words_[i] &= ~other.words_[i];
  }
  /// Ascending.
  template <typename Function>
  void for_each(const Function& function) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (auto rest = words_[i]; rest != 0; rest &= rest - 1)
        function(static_cast<int>(64 * i) + std::countr_zero(rest));
  }

  void write(ByteWriter& to) const {
    auto words = words_.size();
    while (words > 0 && words_[words - 1] == 0) --words;
    to.number(static_cast<std::int64_t>(words));
    for (std::size_t i = 0; i < words; ++i) to.word(words_[i]);
  }
  static BitVector read(ByteReader& from) {
    BitVector bits;
    bits.words_.resize(static_cast<std::size_t>(from.number()));
    for (auto& word : bits.words_) word = from.word();
    return bits;
  }

 private:
  static std::uint64_t mask(int bit) { return std::uint64_t{1} << (bit % 64); }
  std::vector<std::uint64_t> words_;
};

}  // namespace kolo::detail
