// Some of the job's ranks, for collectives among them alone.
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kolo {

namespace detail {
struct ProcessSetAccess;
}

/// A value; a default-constructed one is the set of all ranks, with the id 0. Any thread. Functions that
/// create or remove sets are collective over all ranks of the job, members or not, and wait for them; they
/// throw FailedPreconditionError without init(). Operations of disjoint sets run at the same time.
class ProcessSet {
 public:
  /// All ranks.
  ProcessSet() = default;

  /// Of `ranks`, which get the numbers 0, 1, … in the order of the list. All ranks give the same list; one
  /// that was given before brings the same set. One rank is legal. Throws InvalidArgumentError for an empty
  /// list, a rank that is not there or stands twice, and, on all ranks, `Mismatched process sets for …` where
  /// the lists differ.
  static ProcessSet create(std::span<const int> ranks);
  static ProcessSet create(std::initializer_list<int> ranks) {
    return create(std::span<const int>(ranks.begin(), ranks.size()));
  }
  /// One set for each color, of the ranks that give it, by key and, for equal keys, by rank; returned is that
  /// of this rank's color. Throws InvalidArgumentError for a negative color.
  static ProcessSet split(int color, int key);

  int id() const { return id_; }
  /// The job's numbers of its ranks, in the set's order. Throws FailedPreconditionError without init(),
  /// InvalidArgumentError after remove().
  std::vector<int> ranks() const;
  int size() const { return static_cast<int>(ranks().size()); }
  /// This rank's number in the set; −1 on ranks outside it.
  int rank() const;
  bool contains_this_rank() const { return rank() >= 0; }
  /// Waits for this rank's pending operations of the set, and removes it on all ranks. Throws
  /// InvalidArgumentError for the set of all ranks.
  void remove();

  bool operator==(const ProcessSet&) const = default;

 private:
  friend struct detail::ProcessSetAccess;
  explicit ProcessSet(int id) : id_(id) {}
  int id_ = 0;
};

}  // namespace kolo
