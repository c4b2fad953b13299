// Sets of ranks, which travel and are told as ranges: at a thousand ranks most are "all but one".
#pragma once

#include <boost/dynamic_bitset.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <kolo/collectives/transport/wire.h>

namespace kolo::detail {

/// By place; all sets of one conversation have the same size.
using RankSet = boost::dynamic_bitset<std::uint64_t>;

/// Ascending.
template <typename Function>
void for_each_rank(const RankSet& set, const Function& function) {
  for (auto place = set.find_first(); place != RankSet::npos; place = set.find_next(place))
    function(static_cast<int>(place));
}

void write_ranks(ByteWriter& to, const RankSet& set);
/// Of `size` places. Throws InternalError for places beyond them.
RankSet read_ranks(ByteReader& from, int size);

/// What errors and warnings say of some of `all` ranks. Where there are few, each: "0,2"; else as ranges, at
/// most eight of them: "0-699,701-1023", "0,2,4,6,8,10,12,14 and 37 more". hosts: by rank, to say where these
/// are: "700 on node88,702-703 on node89"; empty: not said.
std::string text_of_ranks(const std::vector<int>& ranks, int all, std::span<const std::string> hosts = {});

}  // namespace kolo::detail
