// The flight records of the ranks of one job, side by side: where did they part?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace kolo::launcher {

struct FlightOperation {
  std::int64_t sequence = 0;  // on its rank
  int channel = -1;
  std::int64_t ticket = -1;  // -1: the ranks had not agreed on its place
  std::string name, kind, shape, dtype, state;
  std::int64_t bytes = 0;
  int process_set = 0;
  double submitted = 0;  // seconds since 1970

  /// "allreduce "g" float32 [3] (12 bytes)".
  std::string describe() const;
};

struct FlightRecord {
  int rank = 0, size = 1;
  std::string host;
  std::string job = {};  // "": written by a kolo that did not name its jobs
  std::string reason;
  double written = 0;                       // seconds since 1970
  std::vector<FlightOperation> operations;  // oldest first
};

/// Throws NotFoundError, or DataLossError that says what is wrong with it; each names `path`.
FlightRecord read_flight_record(const std::string& path);

struct JobRecords {
  std::vector<FlightRecord> records;  // by rank
  std::vector<std::string> left_out;  // files of earlier jobs
};
/// Of every kolo-flight.<rank>.json of the folders and the files named those of one job, the one that has
/// written last: a folder keeps what earlier jobs have left in it. Those that name none are taken for one
/// job's. Throws NotFoundError where there is none, InvalidArgumentError where two of that job are of one
/// rank or of different size, as file_error.h says where a folder cannot be read.
JobRecords read_flight_records(const std::vector<std::string>& paths);

/// The first place at which the records part, as a sentence; empty if they do not. In this order: the first
/// operation (by channel and ticket) that ranks know as different ones or with different states of
/// completion, then an operation by name that some ranks have submitted and others have not.
std::string first_divergence(const std::vector<FlightRecord>& records);
/// {"ranks":[{"rank","host","reason","operations","pending":[…],"last_finished"}],"missing":[…],"divergence"}
nlohmann::ordered_json flight_summary(const std::vector<FlightRecord>& records);

}  // namespace kolo::launcher
