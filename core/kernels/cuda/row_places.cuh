// Which rows of a tensor are named, and at which places: by a look at all indices for each row, or by a list
// of them that is sorted. Works of rows.cu and row_updates.cu are templates of the two. A unit is what a team
// asks for a row.
#pragma once

#include <kolo/core/kernels/cuda/launch_rows.h>

namespace kolo::cuda {

/// A team works on so many columns of a row, one of its lanes on kColumnsOfLane of them at a time.
inline constexpr std::int64_t kColumnsOfTeam = 256;
inline constexpr int kColumnsOfLane = 8;

/// The indices as they were given.
template <typename Index>
struct RowNumbers {
  const Index* indices;
  std::int64_t count;
  std::int64_t rows;
  BadValue* bad;

  explicit RowNumbers(const Rows& of)
      : indices(static_cast<const Index*>(of.indices)), count(of.count), rows(of.rows), bad(of.bad) {}
  KOLO_HOST_DEVICE bool names_row(std::int64_t i) const { return indices[i] >= 0 && indices[i] < rows; }
  KOLO_HOST_DEVICE void note(std::int64_t i) const {
    if (!names_row(i)) elements::note_bad_value(bad, i, static_cast<std::int64_t>(indices[i]));
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(indices, count);
  }
};

/// A unit is a row.
template <typename Index>
struct AllPlaces : RowNumbers<Index> {
  using RowNumbers<Index>::RowNumbers;
  KOLO_HOST_DEVICE std::int64_t units() const { return this->rows; }
  KOLO_HOST_DEVICE std::int64_t row_of(std::int64_t unit) const { return unit; }
  template <typename Team>
  KOLO_HOST_DEVICE void note_all(const Team& team) const {
    for (std::int64_t i = team.lane(); i < this->count; i += team.lanes()) this->note(i);
  }
  /// visit(place) for each place that names the unit's row, in their order.
  template <typename Visit>
  KOLO_HOST_DEVICE void for_each(std::int64_t unit, const Visit& visit) const {
    for (std::int64_t i = 0; i < this->count; ++i)
      if (this->indices[i] == unit) visit(i);
  }
};

/// A unit is a place in the sorted list: the first one of a row has the row, the others have none.
struct SortedPlaces {
  const std::uint32_t* numbers;
  const std::uint32_t* places;
  std::int64_t count;
  std::int64_t rows;

  explicit SortedPlaces(const Rows& of)
      : numbers(of.sorted.numbers), places(of.sorted.places), count(of.count), rows(of.rows) {}
  KOLO_HOST_DEVICE std::int64_t units() const { return count; }
  KOLO_HOST_DEVICE std::int64_t row_of(std::int64_t unit) const {
    const std::int64_t row = numbers[unit];
    return row == rows || (unit > 0 && numbers[unit - 1] == row) ? -1 : row;
  }
  template <typename Team>
  KOLO_HOST_DEVICE void note_all(const Team&) const {}
  template <typename Visit>
  KOLO_HOST_DEVICE void for_each(std::int64_t unit, const Visit& visit) const {
    const std::uint32_t row = numbers[unit];
    for (std::int64_t k = unit; k < count && numbers[k] == row; ++k) visit(std::int64_t{places[k]});
  }
  template <typename Visit>
  void operands(const Visit& visit) {
    visit(numbers, count);
    visit(places, count);
  }
};

/// Calls run(places) with those of the two that the arguments are for.
template <typename Run>
cudaError_t with_places(const Rows& rows, const Run& run) {
  if (rows.sorted.numbers != nullptr) return run(SortedPlaces(rows));
  switch (rows.index_type) {
    case ElementType::i32: return run(AllPlaces<std::int32_t>(rows));
    case ElementType::i64: return run(AllPlaces<std::int64_t>(rows));
    default: return cudaErrorInvalidValue;
  }
}

}  // namespace kolo::cuda
