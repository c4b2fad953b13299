// The control messages of messages.proto to and from what the rest of kolo speaks of. What comes from the
// wire is checked here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include <kolo/core/cluster/master/master.h>
#include <kolo/core/cluster/worker/worker.h>

#include "core/cluster/rpc/messages.pb.h"

namespace kolo::detail {

using Strings = google::protobuf::RepeatedPtrField<std::string>;

/// Throws InvalidArgumentError for bytes that are no such message.
void parse_message(google::protobuf::MessageLite& message, std::string_view bytes);
template <typename Message>
Message parsed(std::string_view bytes) {
  Message message;
  parse_message(message, bytes);
  return message;
}

void put_strings(Strings& to, const std::vector<std::string>& from);
/// Names of nodes, tensors, variables, tasks, devices: at most 64 KiB each and without control characters, as
/// `what` in the error's text.
std::string checked_name(const std::string& name, const char* what);
std::vector<std::string> checked_names(const Strings& from, const char* what);
/// A session's handle: 1 … 64 letters and digits.
std::string checked_handle(const std::string& handle);

kolo::cluster::SessionConfigDef to_def(const SessionConfig& config);
SessionConfig from_def(const kolo::cluster::SessionConfigDef& def);
kolo::cluster::DeviceDef to_def(const DeviceAttributes& device);
DeviceAttributes from_def(const kolo::cluster::DeviceDef& def);
kolo::cluster::TaskStatusDef to_def(const TaskStatus& status);
TaskStatus from_def(const kolo::cluster::TaskStatusDef& def);
kolo::cluster::StepNamesDef to_def(const StepNames& names);
StepNames from_def(const kolo::cluster::StepNamesDef& def);
kolo::cluster::VariablesRequestDef to_def(const std::string& session, const std::vector<VariableKey>& keys);
std::vector<VariableKey> keys_of(const kolo::cluster::VariablesRequestDef& def);
/// Throws InvalidArgumentError for a level that there is not.
TraceLevel trace_level_of(std::uint32_t level);

/// Times cross by their distance from now, since each machine's clock shows another one.
std::string encode_metadata(const RunMetadata& metadata);
RunMetadata decode_metadata(std::string_view bytes);

/// Texts beyond 4 KiB are cut: a call's trailers are bounded.
std::string encode_error(const std::exception_ptr& error);
/// What encode_error wrote, and nothing (null) for all else.
std::exception_ptr decode_error(std::string_view bytes);

}  // namespace kolo::detail
