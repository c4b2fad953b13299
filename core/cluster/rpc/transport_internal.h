// What both ends of the wire settle with gRPC: its life, its options, its errors.
#pragma once

#include <chrono>
#include <exception>
#include <string>

#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/status.h>

#include <kolo/core/base/mutex.h>
#include <kolo/core/cluster/call.h>

namespace kolo::detail {

// Metadata of each call.
inline constexpr const char* kCallerKey = "kolo-from";
inline constexpr const char* kVersionKey = "kolo-version";
inline constexpr const char* kClusterKey = "kolo-cluster";
inline constexpr const char* kTaskKey = "kolo-to";
inline constexpr const char* kTokenKey = "kolo-token-bin";
inline constexpr const char* kGreetKey =
    "kolo-greet";  // its messages wait until the server has taken the call

inline constexpr const char* kWorkerService = "/kolo.cluster.WorkerService/";
inline constexpr const char* kMasterService = "/kolo.cluster.MasterService/";

/// Starts gRPC at the first call, for the rest of the process: a gRPC that is shut down while one of its
/// objects is still on its way out waits 10 s for it. Its log lines of level error become warnings of ours,
/// one a minute.
void use_transport();

/// Pings, bounds of messages: the same for clients and servers.
template <typename Settings>
void set_common_arguments(Settings&& set) {
  set("grpc.keepalive_time_ms", 2000);
  set("grpc.keepalive_timeout_ms", 2000);
  set("grpc.keepalive_permit_without_calls", 1);
  set("grpc.http2.max_pings_without_data", 0);
  set("grpc.http2.min_ping_interval_without_data_ms", 1000);  // a server's: what it allows
  set("grpc.http2.max_ping_strikes", 0);
  set("grpc.max_metadata_size", 32 << 10);
  // What is sent is as large as what comes: a bound of messages holds for it before it takes memory.
  set("grpc.per_message_decompression", 0);
  set("grpc.per_message_compression", 0);
}

/// The status that carries an error; OK for null.
grpc::Status to_status(const std::exception_ptr& error);
/// The error that a call to `address` ended with, null for OK: the other end's own, or what the transport
/// says about a peer that is lost or not there. cancelled: by this process.
std::exception_ptr from_status(const grpc::Status& status, const std::string& address, bool cancelled);

/// Lets one through per interval. Any thread.
class OncePer {
 public:
  explicit OncePer(std::chrono::seconds interval) : interval_(interval) {}
  bool now() KOLO_EXCLUDES(mutex_);

 private:
  const std::chrono::seconds interval_;
  Mutex mutex_;
  std::chrono::steady_clock::time_point next_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::detail
