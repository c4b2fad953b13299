#include <kolo/core/runtime/trace.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include <kolo/core/base/json_text.h>

namespace kolo {

std::string chrome_trace_json(const StepTrace& trace, int rank) {
  using Json = nlohmann::ordered_json;
  using Microseconds = std::chrono::duration<double, std::micro>;
  auto origin = std::chrono::steady_clock::time_point::max();
  for (const auto& event : trace.events) origin = std::min(origin, event.start);

  std::map<std::pair<int, std::string>, int> lanes;
  std::set<int> processes;
  Json events = Json::array();
  const auto name_process = [&](int process) {
    const std::string name =
        process == 0 ? "rank " + std::to_string(rank) : "task " + std::to_string(process);
    if (processes.insert(process).second)
      events.push_back(
          {{"name", "process_name"}, {"ph", "M"}, {"pid", rank + process}, {"args", {{"name", name}}}});
  };
  name_process(0);
  for (const auto& event : trace.events) {
    name_process(event.process);
    const int pid = rank + event.process;
    const auto [lane, is_new] =
        lanes.emplace(std::pair(event.process, event.lane), static_cast<int>(lanes.size()));
    if (is_new)
      events.push_back({{"name", "thread_name"},
                        {"ph", "M"},
                        {"pid", pid},
                        {"tid", lane->second},
                        {"args", {{"name", event.lane}}}});
    events.push_back({{"name", event.name},
                      {"cat", event.category},
                      {"ph", "X"},
                      {"ts", Microseconds(event.start - origin).count()},
                      {"dur", Microseconds(event.end - event.start).count()},
                      {"pid", pid},
                      {"tid", lane->second}});
  }
  return json_text(Json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}});
}

}  // namespace kolo
