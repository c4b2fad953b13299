#include <cstdlib>
#include <string_view>

#include <absl/synchronization/mutex.h>
#include <grpc/grpc.h>
#include <grpc/support/log.h>

#include <kolo/core/base/error.h>
#include <kolo/core/base/keep_freed_memory.h>
#include <kolo/core/base/log.h>

#include <kolo/core/cluster/rpc/messages_internal.h>
#include <kolo/core/cluster/rpc/transport_internal.h>

namespace kolo::detail {
namespace {

constexpr std::chrono::seconds kLogInterval{60};

void log_of_transport(gpr_log_func_args* entry) {
  static OncePer minute(kLogInterval);
  if (entry->severity == GPR_LOG_SEVERITY_ERROR && minute.now()) log_warning("gRPC: {}", entry->message);
}

void set_up_transport() {
  keep_freed_memory();  // what a stream reads is allocated and freed 64 KiB at a time
  // A build of Abseil for debugging, as Debian's is, looks for circles at each lock, under one lock of all
  // threads: a tenth of a small call's time. Optimised builds do not look.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Who asks gRPC itself for its log gets it as gRPC writes it.
  if (std::getenv("GRPC_VERBOSITY") == nullptr && std::getenv("GRPC_TRACE") == nullptr) {
    gpr_set_log_function(log_of_transport);
    gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  }
  grpc_init();  // for good, see the header
}

grpc::StatusCode status_code(Code code) {
  switch (code) {
    case Code::cancelled: return grpc::StatusCode::CANCELLED;
    case Code::unknown: return grpc::StatusCode::UNKNOWN;
    case Code::invalid_argument: return grpc::StatusCode::INVALID_ARGUMENT;
    case Code::deadline_exceeded: return grpc::StatusCode::DEADLINE_EXCEEDED;
    case Code::not_found: return grpc::StatusCode::NOT_FOUND;
    case Code::already_exists: return grpc::StatusCode::ALREADY_EXISTS;
    case Code::resource_exhausted: return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case Code::failed_precondition: return grpc::StatusCode::FAILED_PRECONDITION;
    case Code::aborted: return grpc::StatusCode::ABORTED;
    case Code::out_of_range: return grpc::StatusCode::OUT_OF_RANGE;
    case Code::unimplemented: return grpc::StatusCode::UNIMPLEMENTED;
    case Code::internal: return grpc::StatusCode::INTERNAL;
    case Code::unavailable: return grpc::StatusCode::UNAVAILABLE;
    case Code::data_loss: return grpc::StatusCode::DATA_LOSS;
  }
  return grpc::StatusCode::UNKNOWN;
}

Code code_of_status(grpc::StatusCode code) {
  for (int i = 0; i <= static_cast<int>(Code::data_loss); ++i)
    if (status_code(static_cast<Code>(i)) == code) return static_cast<Code>(i);
  return Code::failed_precondition;  // PERMISSION_DENIED, UNAUTHENTICATED
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// gRPC has no codes for how a connection ends, only texts.
std::string reason_of_loss(const std::string& text) {
  if (contains(text, "keepalive") || contains(text, "Connection timed out")) return "no answer for 4 s";
  for (const char* const unconnected :
       {"ailed to connect", "DNS resolution", "handshake", "Handshake", "backends", "empty address list"})
    if (contains(text, unconnected)) return "cannot be reached: " + text;
  return "connection closed";
}

}  // namespace

void use_transport() { [[maybe_unused]] static const bool once = (set_up_transport(), true); }

bool OncePer::now() {
  const auto time = std::chrono::steady_clock::now();
  MutexLock lock(mutex_);
  if (time < next_) return false;
  next_ = time + interval_;
  return true;
}

grpc::Status to_status(const std::exception_ptr& error) {
  if (error == nullptr) return grpc::Status::OK;
  auto code = Code::unknown;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    code = code_of(caught);
  } catch (...) {
  }
  return {status_code(code), "", encode_error(error)};
}

std::exception_ptr from_status(const grpc::Status& status, const std::string& address, bool cancelled) {
  if (status.ok()) return nullptr;
  if (auto error = decode_error(status.error_details())) return error;
  const std::string& text = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
      if (cancelled) return std::make_exception_ptr(CancelledError("the call to {} was cancelled", address));
      return std::make_exception_ptr(UnavailableError("{}: connection closed", address));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return std::make_exception_ptr(DeadlineExceededError("{} did not answer before the deadline", address));
    case grpc::StatusCode::UNAVAILABLE:
      return std::make_exception_ptr(UnavailableError("{}: {}", address, reason_of_loss(text)));
    default: try { throw_error(code_of_status(status.error_code()), address + ": " + text);
      } catch (...) {
        return std::current_exception();
      }
  }
}

}  // namespace kolo::detail
