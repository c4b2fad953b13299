// kolo-inspect flight: the flight records of a job's ranks, lined up.
#include <fmt/ranges.h>

#include <cstdio>
#include <string>
#include <vector>

#include <kolo/core/base/json_text.h>
#include <kolo/core/base/text.h>
#include <kolo/launcher/flight_records.h>
#include <kolo/launcher/inspect_command.h>

namespace kolo::launcher {
namespace {

constexpr char kFlightUsage[] = "flight FOLDER | FILE… [--json]";

void print_flight_help() {
  fmt::print(
      "Usage: kolo-inspect {}\n\n"
      "Lines up the ranks' last collectives, which kolo writes to kolo-flight.<rank>.json when a collective\n"
      "fails or stalls, on SIGUSR2, and before SIGTERM ends a rank that waits. Prints for each rank why it "
      "was\n"
      "written and what was pending, and the first operation at which the ranks part.\n"
      "FOLDER: where the records lie; the failed job has said so (\"flight record: …\").\n"
      "Where several jobs have left theirs, those of the last one.\n"
      "--json: one line of JSON. Exit code 0 whether they part or not.\n",
      kFlightUsage);
}

void print(const nlohmann::ordered_json& summary) {
  for (const auto& rank : summary["ranks"]) {
    fmt::print("rank {} on {}: {}\n", json_text(rank["rank"]), rank["host"].get<std::string>(),
               rank["reason"].get<std::string>());
    if (!rank["last_finished"].is_null())
      fmt::print("  last finished: {}\n", rank["last_finished"].get<std::string>());
    for (const auto& pending : rank["pending"]) fmt::print("  pending: {}\n", pending.get<std::string>());
  }
  if (!summary["missing"].empty()) fmt::print("no record of ranks {}\n", json_text(summary["missing"]));
  if (const auto& left_out = summary["left_out"]; !left_out.empty())
    fmt::print("left out, of earlier jobs: {}\n", fmt::join(left_out.get<std::vector<std::string>>(), ", "));
  if (summary["divergence"].is_null()) fmt::print("the records do not part\n");
  else fmt::print("first divergence: {}\n", summary["divergence"].get<std::string>());
}

void inspect_flight(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  bool json = false;
  for (const auto& word : words) {
    if (asks_for_help(word)) return print_flight_help();
    if (word == "--json") json = true;
    else if (word.starts_with("--"))
      throw CommandLineError(fmt::format("unknown option {}{}; usage: kolo-inspect {}", word,
                                         did_you_mean(word, {"--json", "--help"}), kFlightUsage));
    else paths.push_back(word);
  }
  if (paths.empty())
    throw CommandLineError(fmt::format("no path given; usage: kolo-inspect {}", kFlightUsage));
  const JobRecords found = read_flight_records(paths);
  auto summary = flight_summary(found.records);
  summary["left_out"] = found.left_out;
  if (json) fmt::print("{}\n", json_text(summary));
  else print(summary);
}

const RegisterInspectCommand flight_command("flight",
                                            {kFlightUsage, "where the collectives of a job's ranks parted",
                                             inspect_flight});

}  // namespace
}  // namespace kolo::launcher
