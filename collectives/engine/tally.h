// What the ranks of a part of the tree together say about one name.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/request.h>

namespace kolo::detail {

/// Ranks here are those of the set.
struct Tally {
  struct Variant {
    int rank = 0;  // the lowest that says so
    RequestPtr request;
  };
  std::string name;
  std::vector<Variant> variants;                   // by rank; one if all agree, none if all have refused
  int contributors = 0;                            // ranks that submitted it
  int joined_rank = -1;                            // one that counts as ready because it has joined
  std::vector<std::pair<int, std::int64_t>> rows;  // of each rank, where they have their own

  static Tally of(int rank, RequestPtr request);
  void merge(Tally other);
  /// The rank's number in the job is members[rank]. "" if all agree.
  std::string disagreement(const std::vector<int>& members) const;

  void write(ByteWriter& to) const;
  static Tally read(ByteReader& from);
};

}  // namespace kolo::detail
