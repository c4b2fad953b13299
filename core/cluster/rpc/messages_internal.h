// The control messages of messages.proto to and from what the rest of kolo speaks of. What comes from the
// wire is checked here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <google/protobuf/repeated_ptr_field.h>

#include <kolo/core/cluster/master/master.h>
#include <kolo/core/cluster/worker/worker.h>

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

def::SessionConfigDef to_def(const SessionConfig& config);
SessionConfig from_def(const def::SessionConfigDef& def);
def::DeviceDef to_def(const DeviceAttributes& device);
DeviceAttributes from_def(const def::DeviceDef& def);
def::TaskStatusDef to_def(const TaskStatus& status);
TaskStatus from_def(const def::TaskStatusDef& def);
def::StepNamesDef to_def(const StepNames& names);
StepNames from_def(const def::StepNamesDef& def);
def::VariablesRequestDef to_def(const std::string& session, const std::vector<VariableKey>& keys);
std::vector<VariableKey> keys_of(const def::VariablesRequestDef& def);
/// To a master a variable is its name alone.
def::VariablesRequestDef to_def(const std::string& session, const std::vector<std::string>& names);
std::vector<std::string> names_of(const def::VariablesRequestDef& def);
def::InitializedResponseDef to_def(const std::vector<bool>& initialized);
/// variables: how many were asked about. Throws DataLossError for another number.
std::vector<bool> from_def(const def::InitializedResponseDef& def, std::size_t variables);
def::SessionRequestDef of_session(const std::string& session);
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
