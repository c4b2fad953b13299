#include <kolo/launcher/flight_records.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/file_error.h>

namespace kolo::launcher {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kMostRanks = 1 << 20;  // those that are missing are listed one by one

bool has_ended(const FlightOperation& operation) {
  return operation.state == "finished" || operation.state == "failed";
}

FlightOperation read_operation(const Json& json) {
  return {.sequence = json.at("sequence"),
          .channel = json.at("channel"),
          .ticket = json.at("ticket"),
          .name = json.at("name"),
          .kind = json.at("kind"),
          .shape = json.value("shape", ""),
          .dtype = json.value("dtype", ""),
          .state = json.at("state"),
          .bytes = json.value("bytes", std::int64_t{0}),
          .process_set = json.at("process_set"),
          .submitted = json.at("submitted")};
}

bool is_flight_file(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("kolo-flight.") && name.ends_with(".json");
}

std::vector<std::string> files_of(const std::string& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  if (!is_folder && (!error || error == std::errc::no_such_file_or_directory)) return {path};
  std::vector<std::string> files;
  if (is_folder)
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error))
      if (is_flight_file(entry->path())) files.push_back(entry->path().string());
  if (error) throw_file_error(fmt::format("read {}", path), error.value());
  std::sort(files.begin(), files.end());
  if (files.empty()) throw NotFoundError("there is no kolo-flight.<rank>.json in {}", path);
  return files;
}

// What ranks do at one place of one channel, or under one name: on each rank that has it.
struct Place {
  std::map<int, const FlightOperation*> by_rank;
  double first_submitted = 0;
};

void add(Place& place, int rank, const FlightOperation& operation) {
  if (place.by_rank.empty() || operation.submitted < place.first_submitted)
    place.first_submitted = operation.submitted;
  place.by_rank[rank] = &operation;
}

// Ranks by what they say, in the order of the lowest rank that says it.
std::string parties(const std::vector<std::pair<int, std::string>>& says) {
  std::vector<std::pair<std::string, std::vector<int>>> groups;
  for (const auto& [rank, text] : says) {
    const std::string& said = text;  // clang 14 captures no structured binding
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == said; });
    if (group == groups.end()) group = groups.insert(groups.end(), {said, {}});
    group->second.push_back(rank);
  }
  std::string text;
  for (const auto& [what, ranks] : groups)
    text += fmt::format("{}{} on ranks [{}]", text.empty() ? "" : ", ", what, fmt::join(ranks, ","));
  return text;
}

// The oldest operation that a rank still has in its record of a channel: what is missing before it was pushed
// out.
std::int64_t oldest_ticket(const FlightRecord& record, int channel) {
  std::int64_t oldest = -1;
  for (const auto& operation : record.operations)
    if (operation.channel == channel && operation.ticket >= 0 && (oldest < 0 || operation.ticket < oldest))
      oldest = operation.ticket;
  return oldest;
}

bool is_pushed_out(const FlightRecord& record, int channel, std::int64_t ticket) {
  const std::int64_t oldest = oldest_ticket(record, channel);
  return record.operations.front().sequence > 0 && (oldest < 0 || ticket < oldest);
}

std::string judge(const std::vector<FlightRecord>& records, int channel, std::int64_t ticket,
                  const Place& place) {
  std::vector<std::pair<int, std::string>> what, state;
  bool all_ended = true, some_pushed_out = false;
  const bool of_set = place.by_rank.begin()->second->process_set != 0;
  for (const auto& record : records) {
    const auto found = place.by_rank.find(record.rank);
    if (found == place.by_rank.end()) {
      // A rank without any operation of the channel is not in the set, as far as one can see.
      if (of_set && oldest_ticket(record, channel) < 0) continue;
      if (!record.operations.empty() && is_pushed_out(record, channel, ticket)) some_pushed_out = true;
      else state.emplace_back(record.rank, "not entered"), all_ended = false;
      continue;
    }
    what.emplace_back(record.rank, found->second->describe());
    state.emplace_back(record.rank, found->second->state);
    all_ended = all_ended && has_ended(*found->second);
  }
  if (some_pushed_out) return "";
  const auto differ = [](const auto& says) {
    return std::any_of(says.begin(), says.end(), [&](const auto& s) { return s.second != says[0].second; });
  };
  if (differ(what)) return fmt::format("the ranks entered different operations: {}", parties(what));
  if (!all_ended) return fmt::format("{}: {}", what[0].second, parties(state));
  return differ(state) ? fmt::format("{}: {}", what[0].second, parties(state)) : "";
}

}  // namespace

std::string FlightOperation::describe() const {
  std::string text = kind.empty() ? fmt::format("\"{}\"", name) : fmt::format("{} \"{}\"", kind, name);
  if (!dtype.empty()) text += " " + dtype;
  if (!shape.empty()) text += " " + shape;
  if (bytes > 0) text += fmt::format(" ({})", count_of(bytes, "byte"));
  if (process_set != 0) text += fmt::format(" in process set {}", process_set);
  return text;
}

FlightRecord read_flight_record(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw NotFoundError("{} cannot be read", path);
  try {
    const Json json = Json::parse(file);
    FlightRecord record{.rank = json.at("rank"),
                        .size = json.at("size"),
                        .host = json.at("host"),
                        .job = json.value("job", ""),
                        .reason = json.at("reason"),
                        .written = json.at("written"),
                        .operations = {}};
    if (record.size < 1 || record.size > kMostRanks || record.rank < 0 || record.rank >= record.size)
      throw DataLossError("{} is no flight record: it is of rank {} of {}", path, record.rank, record.size);
    for (const auto& operation : json.at("operations"))
      record.operations.push_back(read_operation(operation));
    return record;
  } catch (const Json::exception& error) {
    throw DataLossError("{} is no flight record: {}", path, error.what());
  }
}

JobRecords read_flight_records(const std::vector<std::string>& paths) {
  std::vector<std::pair<std::string, FlightRecord>> all;  // by file
  for (const auto& path : paths)
    for (const auto& file : files_of(path)) all.emplace_back(file, read_flight_record(file));
  const auto newest = std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second.written < b.second.written;
  });
  JobRecords found;
  std::map<int, FlightRecord> by_rank;
  for (const auto& [file, record] : all) {
    if (record.job != newest->second.job) {
      found.left_out.push_back(file);
      continue;
    }
    if (record.size != newest->second.size)
      throw InvalidArgumentError("{} is of a job of {}, {} of {}", file, count_of(record.size, "rank"),
                                 newest->first, newest->second.size);
    if (!by_rank.emplace(record.rank, record).second)
      throw InvalidArgumentError("{} is a second record of rank {}", file, record.rank);
  }
  for (auto& [rank, record] : by_rank) found.records.push_back(std::move(record));
  return found;
}

std::string first_divergence(const std::vector<FlightRecord>& records) {
  std::map<std::pair<int, std::int64_t>, Place> agreed;
  std::map<std::pair<int, std::string>, Place> by_name;  // of what the ranks have not agreed on
  for (const auto& record : records)
    for (const auto& operation : record.operations)
      if (operation.ticket >= 0) add(agreed[{operation.channel, operation.ticket}], record.rank, operation);
      else add(by_name[{operation.process_set, operation.name}], record.rank, operation);

  std::string first;
  double when = 0;
  for (const auto& [key, place] : agreed) {
    if (!first.empty() && place.first_submitted >= when) continue;
    std::string text = judge(records, key.first, key.second, place);
    if (text.empty()) continue;
    first = std::move(text);
    when = place.first_submitted;
  }
  for (const auto& [key, place] : by_name) {
    const bool waits = std::any_of(place.by_rank.begin(), place.by_rank.end(),
                                   [](const auto& entry) { return !has_ended(*entry.second); });
    if (!waits || (!first.empty() && place.first_submitted >= when)) continue;
    std::vector<std::pair<int, std::string>> says;
    for (const auto& record : records) {
      const auto found = place.by_rank.find(record.rank);
      says.emplace_back(record.rank,
                        found == place.by_rank.end()
                            ? "not submitted"
                            : fmt::format("{} ({})", found->second->state, found->second->describe()));
    }
    first = fmt::format("\"{}\": {}", key.second, parties(says));
    when = place.first_submitted;
  }
  return first;
}

nlohmann::ordered_json flight_summary(const std::vector<FlightRecord>& records) {
  Json ranks = Json::array(), missing = Json::array();
  for (const auto& record : records) {
    Json pending = Json::array();
    Json last_finished = nullptr;
    for (const auto& operation : record.operations) {
      if (!has_ended(operation)) pending.push_back(operation.describe());
      else if (operation.state == "finished") last_finished = operation.describe();
    }
    ranks.push_back({{"rank", record.rank},
                     {"host", record.host},
                     {"reason", record.reason},
                     {"operations", record.operations.size()},
                     {"pending", std::move(pending)},
                     {"last_finished", std::move(last_finished)}});
  }
  const int size = records.empty() ? 0 : records.front().size;
  for (int rank = 0; rank < size; ++rank)
    if (std::none_of(records.begin(), records.end(), [&](const auto& r) { return r.rank == rank; }))
      missing.push_back(rank);
  const std::string divergence = first_divergence(records);
  return {{"ranks", std::move(ranks)},
          {"missing", std::move(missing)},
          {"divergence", divergence.empty() ? Json(nullptr) : Json(divergence)}};
}

}  // namespace kolo::launcher
