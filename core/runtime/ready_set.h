// The ready nodes of a step, by their position in the plan: whoever takes one gets the one that the plan has
// first. Two levels of bits, so that a step of ten thousand nodes needs 160 words and looks at three or four.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace kolo {

/// Positions 0 … size − 1. One thread.
class ReadySet {
 public:
  explicit ReadySet(int size)
      : words_((static_cast<std::size_t>(size) + 63) / 64), summary_((words_.size() + 63) / 64) {}

  void insert(int position) {
    const auto p = static_cast<std::size_t>(position);
    words_[p / 64] |= std::uint64_t{1} << p % 64;
    summary_[p / 4096] |= std::uint64_t{1} << p / 64 % 64;
  }
  bool empty() const {
    for (const std::uint64_t bits : summary_)
      if (bits != 0) return false;
    return true;
  }
  /// Removes the smallest; −1 if there is none.
  int take() {
    for (std::size_t s = 0; s < summary_.size(); ++s) {
      if (summary_[s] == 0) continue;
      const std::size_t w = s * 64 + static_cast<std::size_t>(std::countr_zero(summary_[s]));
      const int position = static_cast<int>(w * 64) + std::countr_zero(words_[w]);
      words_[w] &= words_[w] - 1;
      if (words_[w] == 0) summary_[s] &= summary_[s] - 1;
      return position;
    }
    return -1;
  }

 private:
  std::vector<std::uint64_t> words_;    // a bit for each position
  std::vector<std::uint64_t> summary_;  // a bit for each word that is not 0
};

/// The same for any number of threads, without a lock. All operations are sequentially consistent: a thread
/// that inserts and then looks for sleepers, and one that counts itself as a sleeper and then looks here,
/// cannot miss each other. A position that was inserted can be overlooked only as long as the insertion of
/// another position is still under way.
class SharedReadySet {
 public:
  explicit SharedReadySet(int size)
      : num_words_((static_cast<std::size_t>(size) + 63) / 64),
        num_summaries_((num_words_ + 63) / 64),
        words_(std::make_unique<std::atomic<std::uint64_t>[]>(num_words_)),
        summary_(std::make_unique<std::atomic<std::uint64_t>[]>(num_summaries_)) {}

  void insert(int position) {
    const auto p = static_cast<std::size_t>(position);
    if (words_[p / 64].fetch_or(std::uint64_t{1} << p % 64) == 0)
      summary_[p / 4096].fetch_or(std::uint64_t{1} << p / 64 % 64);
  }
  bool empty() const {
    for (std::size_t s = 0; s < num_summaries_; ++s)
      if (summary_[s].load() != 0) return false;
    return true;
  }
  int take() {
    for (std::size_t s = 0; s < num_summaries_; ++s)
      while (const std::uint64_t bits = summary_[s].load()) {
        const std::size_t w = s * 64 + static_cast<std::size_t>(std::countr_zero(bits));
        const int found = take_from(w);
        if (words_[w].load() == 0) {
          // Out of the summary, and in again if something was inserted meanwhile.
          summary_[s].fetch_and(~(bits & -bits));
          if (words_[w].load() != 0) summary_[s].fetch_or(bits & -bits);
        }
        if (found >= 0) return found;
      }
    return -1;
  }

 private:
  int take_from(std::size_t w) {
    while (const std::uint64_t word = words_[w].load()) {
      const std::uint64_t lowest = word & -word;
      if ((words_[w].fetch_and(~lowest) & lowest) != 0)
        return static_cast<int>(w * 64) + std::countr_zero(lowest);
    }
    return -1;
  }

  std::size_t num_words_;
  std::size_t num_summaries_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> summary_;
};

}  // namespace kolo
