#include <kolo/core/runtime/trace.h>

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

namespace kolo {

std::string chrome_trace_json(const StepTrace& trace, int rank) {
  using Json = nlohmann::ordered_json;
  using Microseconds = std::chrono::duration<double, std::micro>;
  auto origin = std::chrono::steady_clock::time_point::max();
  for (const auto& event : trace.events) origin = std::min(origin, event.start);

  std::map<std::string, int> lanes;
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", rank},
                    {"args", {{"name", "rank " + std::to_string(rank)}}}});
  for (const auto& event : trace.events) {
    const auto [lane, is_new] = lanes.emplace(event.lane, static_cast<int>(lanes.size()));
    if (is_new)
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", rank},
                        {"tid", lane->second},
                        {"args", {{"name", event.lane}}}});
    events.push_back({{"name", event.name},
                      {"cat", event.category},
                      {"ph", "X"},
                      {"ts", Microseconds(event.start - origin).count()},
                      {"dur", Microseconds(event.end - event.start).count()},
                      {"pid", rank},
                      {"tid", lane->second}});
  }
  return Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

}  // namespace kolo
