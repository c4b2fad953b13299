#include <kolo/collectives/progress/timeline.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include <kolo/core/base/json_text.h>

namespace kolo {
namespace {

constexpr std::size_t kMostEvents = std::size_t{1} << 20;

}  // namespace

int Timeline::index_of(std::string_view text) {
  const auto found = std::find(texts_.begin(), texts_.end(), text);
  if (found == texts_.end()) {
    texts_.emplace_back(text);
    return static_cast<int>(texts_.size()) - 1;
  }
  return static_cast<int>(found - texts_.begin());
}

void Timeline::add(const Event& event) {
  MutexLock lock(mutex_);
  if (events_.size() == kMostEvents) {
    ++dropped_;
    return;
  }
  events_.push_back({.name = index_of(event.name),
                     .category = index_of(event.category),
                     .lane = index_of(event.lane),
                     .bytes = event.bytes,
                     .start = event.start,
                     .end = event.end});
}

std::string Timeline::events_json(int rank, std::string_view host) const {
  using Json = nlohmann::ordered_json;
  using Microseconds = std::chrono::duration<double, std::micro>;
  MutexLock lock(mutex_);
  std::string json;
  const auto append = [&](const Json& event) {
    if (!json.empty()) json += ",\n";
    json += json_text(event);
  };
  append({{"name", "process_name"},
          {"ph", "M"},
          {"pid", rank},
          {"args", {{"name", fmt::format("rank {} on {}", rank, host)}}}});
  append({{"name", "process_sort_index"}, {"ph", "M"}, {"pid", rank}, {"args", {{"sort_index", rank}}}});
  std::set<int> lanes;
  for (const auto& event : events_)
    if (lanes.insert(event.lane).second)
      append({{"name", "thread_name"},
              {"ph", "M"},
              {"pid", rank},
              {"tid", event.lane},
              {"args", {{"name", texts_[event.lane]}}}});
  for (const auto& event : events_) {
    Json drawn = {{"name", texts_[event.name]},
                  {"cat", texts_[event.category]},
                  {"ph", "X"},
                  {"ts", Microseconds(event.start - origin_).count()},
                  {"dur", Microseconds(event.end - event.start).count()},
                  {"pid", rank},
                  {"tid", event.lane}};
    if (event.bytes > 0) drawn["args"] = {{"bytes", event.bytes}};
    append(drawn);
  }
  if (dropped_ > 0)
    append({{"name", fmt::format("{} later events were not kept", dropped_)},
            {"ph", "i"},
            {"s", "p"},
            {"ts", Microseconds(events_.back().end - origin_).count()},
            {"pid", rank},
            {"tid", 0}});
  return json;
}

}  // namespace kolo
