#include <kolo/collectives/engine/process_set.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <kolo/collectives/engine/call.h>
#include <kolo/collectives/engine/process_set_internal.h>

namespace kolo {
namespace {

using detail::current_engine;
using detail::EngineOperation;
using detail::OpKind;
using detail::Request;
using detail::SetEngine;

void check_list(std::span<const int> ranks, int size) {
  if (ranks.empty()) throw InvalidArgumentError("a process set needs at least one rank");
  std::set<int> seen;
  for (const int rank : ranks)
    if (rank < 0 || rank >= size || !seen.insert(rank).second)
      throw InvalidArgumentError(
          "process set [{}]: rank {} {}; there are ranks 0 to {}", fmt::join(ranks, ","), rank,
          rank < 0 || rank >= size ? "does not exist" : "stands there twice", size - 1);
}

}  // namespace

namespace detail {

std::vector<ProcessSet> ProcessSetAccess::make(const std::vector<std::vector<int>>& lists) {
  const auto operation =
      detail::start(OpKind::process_set, {}, [&](EngineOperation&, Request& request, const SetEngine& all) {
        for (const auto& list : lists) check_list(list, all.size());
        request.payload = detail::payload_to_make(lists);
      });
  operation->get();
  std::vector<ProcessSet> sets;
  for (const auto id : operation->numbers) sets.push_back(ProcessSet(static_cast<int>(id)));
  return sets;
}

}  // namespace detail

ProcessSet ProcessSet::create(std::span<const int> ranks) {
  return detail::ProcessSetAccess::make({std::vector<int>(ranks.begin(), ranks.end())})[0];
}

ProcessSet ProcessSet::split(int color, int key) {
  if (color < 0) throw InvalidArgumentError("split: the color is {}; it must not be negative", color);
  int own[] = {color, key};
  const auto gather = detail::start(OpKind::allgather, {},
                                    [&](EngineOperation& operation, Request& request, const SetEngine&) {
                                      operation.writes = false;
                                      operation.buffers.push_back(TypedBuffer::of(std::span<int>(own)));
                                      request.tensors.push_back({DType::i32, Shape{2}});
                                    });
  gather->get();
  const auto all = gather->results[0].span<int>();
  std::map<int, std::vector<std::pair<int, int>>> by_color;  // (key, rank)
  for (int rank = 0; rank < static_cast<int>(all.size()) / 2; ++rank)
    by_color[all[2 * rank]].emplace_back(all[2 * rank + 1], rank);
  std::vector<std::vector<int>> lists;
  std::size_t own_list = 0;
  for (auto& [one_color, ranks] : by_color) {
    if (one_color == color) own_list = lists.size();
    std::sort(ranks.begin(), ranks.end());
    auto& list = lists.emplace_back();
    for (const auto& [one_key, rank] : ranks) list.push_back(rank);
  }
  return detail::ProcessSetAccess::make(lists)[own_list];
}

std::vector<int> ProcessSet::ranks() const { return current_engine()->members(id_); }

int ProcessSet::rank() const {
  const auto all = ranks();
  const auto place = std::find(all.begin(), all.end(), current_engine()->rank());
  return place == all.end() ? -1 : static_cast<int>(place - all.begin());
}

void ProcessSet::remove() {
  if (rank() >= 0) current_engine()->set(id_)->wait_until_idle();
  const auto operation =
      detail::start(OpKind::process_set, {}, [&](EngineOperation&, Request& request, const SetEngine&) {
        if (id_ == 0) throw InvalidArgumentError("process set 0, of all ranks, cannot be removed");
        request.payload = detail::payload_to_remove(id_);
      });
  operation->get();
}

}  // namespace kolo
