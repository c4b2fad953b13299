// kolo's options: environment variables, read once by init, each also a field for programs that set them in
// code.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/log.h>

namespace kolo {

/// What kolo reads from the environment at init, for programs that set it in code. One comment a field.
struct EngineOptions {
  static constexpr std::int64_t kBucketBytes = std::int64_t{25} << 20;
  static constexpr std::int64_t kFirstBucketBytes = std::int64_t{1} << 20;  // small: sending starts early

  std::int64_t bucket_bytes = kBucketBytes;                 // KOLO_BUCKET_BYTES: upper bound of a bucket
  std::int64_t first_bucket_bytes = kFirstBucketBytes;      // KOLO_FIRST_BUCKET_BYTES: of the first one
  std::int64_t fusion_bytes = std::int64_t{64} << 20;       // KOLO_FUSION_BYTES: 0 = no fusion
  std::chrono::duration<double, std::milli> cycle_time{1};  // KOLO_CYCLE_TIME_MS
  std::int64_t cache_capacity = 1024;                       // KOLO_CACHE_CAPACITY: names; 0 = off
  std::string allreduce = "auto";                           // KOLO_ALLREDUCE: auto, or an algorithm's name
  std::int64_t chunk_bytes = std::int64_t{256} << 10;       // KOLO_CHUNK_BYTES: of one message
  bool autotune = false;                                    // KOLO_AUTOTUNE: 0, or 1: measure
  std::string cost_table;                                   // KOLO_AUTOTUNE: a file of kolo-bench tune
  bool f32_wire = false;                                    // KOLO_F32_WIRE: 16-bit floats travel in f32
  std::string autotune_log;                                 // KOLO_AUTOTUNE_LOG: a file, "" for none
  std::string timeline;                                     // KOLO_TIMELINE: a file, "" for none
  std::chrono::duration<double> stall_warning{60};          // KOLO_STALL_WARNING_S: 0 = never
  std::chrono::duration<double> stall_abort{600};           // KOLO_STALL_ABORT_S: 0 = never
  LogLevel log_level = LogLevel::info;                      // KOLO_LOG_LEVEL: debug|info|warning|error|off
  std::optional<int> comm_thread_core;                      // KOLO_COMM_THREAD_CORE: left out = not pinned
  std::string flight_dir;  // KOLO_FLIGHT_DIR: where flight records go; "": see FlightRecorder::write
  std::string data_dir;    // KOLO_DATA_DIR: holds mnist/ and shakespeare/
  int virtual_gpus = 0;    // KOLO_VIRTUAL_GPUS: how many to pretend

  /// Throws InvalidArgumentError that names the variable, its value and what is allowed.
  static EngineOptions from_environment();
};

/// Every variable that kolo and its programs read.
const std::vector<std::string>& known_variables();

/// Variable and value of the options that all ranks must share, in a fixed order.
std::vector<std::pair<std::string, std::string>> shared_options(const EngineOptions& options);

/// The options of which not all ranks have the same value (rank by rank, the same names in the same order):
/// `  KOLO_BUCKET_BYTES: 1000 on ranks [1]; 26214400 on ranks [0,2]`. Empty if all ranks agree.
std::string differences_table(const std::vector<std::vector<std::pair<std::string, std::string>>>& ranks);

}  // namespace kolo
