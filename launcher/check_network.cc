#include <kolo/launcher/check_network.h>

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include <kolo/core/base/error.h>
#include <kolo/launcher/child.h>
#include <kolo/launcher/program_search.h>
#include <kolo/launcher/rank_starter.h>
#include <kolo/launcher/srun_command.h>

namespace kolo::launcher {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kLongest{30};

std::string link_line(const json& link) {
  const std::string from = link.at("from"), to = link.at("to"), transport = link.at("transport");
  return fmt::format("{}: {}, {:.3g} GB/s in each direction, {:.1f} us",
                     from == to ? "on " + from : fmt::format("{} - {}", from, to), transport,
                     link.at("GBps").get<double>(), link.at("latency_us").get<double>());
}

std::string scaling_line(const json& report) {
  const auto number = [&](const char* name) { return report.at(name).get<double>(); };
  return fmt::format(
      "to expect: {:.1f} MiB of gradients are reduced in {:.3g} ms; steps that compute for {:.3g} ms scale "
      "with {:.0f} %, with {:.0f} % where the backward pass hides it",
      number("gradient_bytes") / (1 << 20), number("reduce_ms"), number("step_ms"),
      100 * number("efficiency"), 100 * number("efficiency_overlapped"));
}

}  // namespace

std::vector<std::string> compose_network_probe(const Options& options, const Surroundings& found) {
  Options probe = options;
  probe.cluster.clear();
  probe.program = {own_folder() + "/kolo-network-probe", std::to_string(options.gradient_bytes),
                   fmt::format("{}", options.step_ms)};
  return starter_of(launcher_of(found.mpi)).compose(probe, found, false);
}

std::string check_network(const Options& options, const Surroundings& found, SignalQueue& signals) {
  const CapturedRun run = run_captured(compose_network_probe(options, found), kLongest, &signals);
  if (run.is_stopped) return "";
  if (!run.good) {
    std::string words = run.err;
    while (!words.empty() && words.back() == '\n') words.pop_back();
    throw UnavailableError("the network could not be measured{}{}", words.empty() ? "" : ":\n",
                           words.empty() ? fmt::format(" within {} s", kLongest.count()) : words);
  }
  std::string report = find_report(run.out);
  if (report.empty()) throw DataLossError("the network probe has printed no measurement");
  return report;
}

std::string find_report(const std::string& lines) {
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);)
    if (const json found = json::parse(line, nullptr, false); found.is_object() && found.contains("between"))
      return line;
  return "";
}

std::vector<std::string> network_lines(const std::string& report) {
  const json told = json::parse(report);
  std::vector<std::string> lines;
  for (const char* links : {"between", "inside"})
    for (const json& link : told.at(links)) lines.push_back(link_line(link));
  if (lines.empty()) return {"one rank: there is no network to measure"};
  lines.push_back(scaling_line(told));
  for (const json& warning : told.at("warnings")) lines.push_back("warning: " + warning.get<std::string>());
  return lines;
}

}  // namespace kolo::launcher
