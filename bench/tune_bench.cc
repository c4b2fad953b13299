#include <bench/tune_bench.h>

#include <fmt/core.h>

#include <fstream>

#include <nlohmann/json.hpp>

#include <kolo/collectives/algorithms/measure_costs.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/process.h>
#include <kolo/core/runtime/group.h>

namespace kolo::bench {

std::string cost_table(const CostModel& costs, const std::vector<std::string>& hosts, int indent) {
  nlohmann::ordered_json table = {{"hosts", hosts}};
  table.update(nlohmann::ordered_json::parse(costs.to_json()));
  return json_text(table, indent);
}

void tune_bench(const TuneBenchOptions& options) {
  const auto runtime = detail::current_runtime();
  if (runtime == nullptr || !runtime->has_peers())
    throw InvalidArgumentError("kolo-bench tune needs two ranks or more, on the hosts that it is to measure");
  CostModel costs;
  runtime->thread().call(
      [&] { costs = measure_costs(runtime->world().messages(), runtime->world().topology()); });
  const auto hosts = world_group().allgather(process().hostname);  // by rank
  if (process().rank != 0) return;
  if (options.output.empty()) {
    fmt::print("{}\n", cost_table(costs, hosts));
    return;
  }
  std::ofstream file(options.output);
  file << cost_table(costs, hosts, 2) << "\n";
  if (!file.flush()) throw UnavailableError("kolo-bench tune cannot write {}", options.output);
}

}  // namespace kolo::bench
