// The calls between the processes of a cluster that have one answer: a row each. Interfaces, remote sides and
// services loop over the rows. A new call is its messages in messages.proto, a row here, and its answer in
// local_master.cc or local_worker.cc. Calls that stream values are declared in master.h and worker.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <kolo/core/cluster/call.h>
#include <kolo/core/graph/graph_def.h>

#include "core/cluster/rpc/messages.pb.h"

namespace kolo::detail {

/// A text as a template's argument.
template <std::size_t size>
struct MethodName {
  constexpr MethodName(const char (&text)[size]) { std::copy_n(text, size, characters); }
  char characters[size] = {};
};

/// One message there, one back.
template <MethodName name, typename RequestMessage, typename AnswerMessage>
struct Unary {
  using Request = RequestMessage;
  using Answer = AnswerMessage;
  static constexpr const char* kMethod = name.characters;
  static constexpr bool kSendsGraph = false;
};

/// A graph follows the message.
template <MethodName name, typename RequestMessage, typename AnswerMessage>
struct Upload : Unary<name, RequestMessage, AnswerMessage> {
  static constexpr bool kSendsGraph = true;
};

/// Answers the calls of the rows, here or through a channel. Any thread. Calls block. The stop of their
/// deadline ends them with CancelledError.
template <typename... Rows>
class Calls {
 public:
  virtual ~Calls() = default;

  template <typename Row>
  typename Row::Answer call(const typename Row::Request& request, const Deadline& deadline) {
    static_assert((std::is_same_v<Row, Rows> || ...) && !Row::kSendsGraph);
    typename Row::Answer answer;
    on_call(Row::kMethod, request, nullptr, answer, deadline);
    return answer;
  }
  template <typename Row>
  typename Row::Answer call(const typename Row::Request& request, GraphDef graph, const Deadline& deadline) {
    static_assert((std::is_same_v<Row, Rows> || ...) && Row::kSendsGraph);
    typename Row::Answer answer;
    on_call(Row::kMethod, request, &graph, answer, deadline);
    return answer;
  }
  template <typename Visit>
  static void for_each_row(const Visit& visit) {
    (visit(Rows()), ...);
  }

 protected:
  using Message = google::protobuf::MessageLite;
  /// graph: the callee's, null for rows without one. The messages are those of the row.
  virtual void on_call(std::string_view method, const Message& request, GraphDef* graph, Message& answer,
                       const Deadline& deadline) = 0;

  /// For on_call(): `answers` has an operator()(row, request, [graph,] deadline) for each row.
  template <typename Answers>
  static void answer_row(const Answers& answers, std::string_view method, const Message& request,
                         GraphDef* graph, Message& answer, const Deadline& deadline) {
    const auto try_row = [&]<typename Row>(Row row) {
      if (method != Row::kMethod) return false;
      const auto& asked = static_cast<const typename Row::Request&>(request);
      auto& answered = static_cast<typename Row::Answer&>(answer);
      if constexpr (Row::kSendsGraph) answered = answers(row, asked, *graph, deadline);
      else answered = answers(row, asked, deadline);
      return true;
    };
    (try_row(Rows()) || ...);
  }
};

namespace def = kolo::cluster;

// Of both. A session that is not there: AbortedError.
/// By keys; to a master, names.
struct AreInitialized : Unary<"AreInitialized", def::VariablesRequestDef, def::InitializedResponseDef> {};
/// Of the session's random ops that have run here, by node.
struct RandomPositions : Unary<"RandomPositions", def::SessionRequestDef, def::RandomPositionsDef> {};
/// Where they go on, or start. More may be named than lie here.
struct SetRandomPositions : Unary<"SetRandomPositions", def::RandomPositionsDef, def::Empty> {};

// Of a worker.
struct GetStatus : Unary<"GetStatus", def::Empty, def::TaskStatusDef> {};
/// A second time with the same handle: AlreadyExistsError.
struct CreateWorkerSession : Unary<"CreateWorkerSession", def::WorkerSessionRequestDef, def::Empty> {};
/// Cancels its steps, drops its parts and isolated variables. One that is not there: nothing.
struct DeleteWorkerSession : Unary<"DeleteWorkerSession", def::SessionRequestDef, def::Empty> {};
/// Checks the part, variables' types and shapes too. Plans it. The answer has its handle.
struct RegisterGraph : Upload<"RegisterGraph", def::RegisterGraphRequestDef, def::RegisterGraphResponseDef> {
};
struct DeregisterGraph : Unary<"DeregisterGraph", def::DeregisterGraphRequestDef, def::Empty> {};
/// Drops variables, queues and accumulators of the containers, those of the default one where none is named.
/// Who waits in them gets CancelledError.
struct CleanupAll : Unary<"CleanupAll", def::ContainersRequestDef, def::Empty> {};
/// Writes and keeps the file of a shard under its temporary name, variable by variable. Without variables
/// only looks for the token file. Throws FailedPreconditionError `checkpoint_dir <d> is not the same folder
/// on <task>` where it is missing or another, and for a variable without a value.
struct WriteShard : Unary<"WriteShard", def::WriteShardRequestDef, def::WriteShardResponseDef> {};
/// Sets the variables to what the files hold. Throws FailedPreconditionError where one is another, or
/// missing.
struct ReadShard : Unary<"ReadShard", def::ReadShardRequestDef, def::Empty> {};

using WorkerCalls =
    Calls<GetStatus, CreateWorkerSession, DeleteWorkerSession, RegisterGraph, DeregisterGraph, CleanupAll,
          AreInitialized, WriteShard, ReadShard, RandomPositions, SetRandomPositions>;

// Of a master.
/// Waits for the tasks that the config's filters pass, until the deadline.
struct CreateSession : Upload<"CreateSession", def::CreateSessionRequestDef, def::CreateSessionResponseDef> {
};
/// Adds nodes. The answer has the new version. Throws AbortedError `Current version is <a> but caller
/// expected <b>.`
struct ExtendSession : Upload<"ExtendSession", def::ExtendSessionRequestDef, def::ExtendSessionResponseDef> {
};
struct MakeCallable : Unary<"MakeCallable", def::MakeCallableRequestDef, def::CallableDef> {};
struct ReleaseCallable : Unary<"ReleaseCallable", def::CallableDef, def::Empty> {};
/// Cancels its steps, waits for them.
struct CloseSession : Unary<"CloseSession", def::SessionRequestDef, def::Empty> {};
struct ListDevices : Unary<"ListDevices", def::SessionRequestDef, def::DevicesDef> {};
/// Closes all sessions of this master. Drops the containers, the default one where none is named, on the
/// tasks that the config's filters pass.
struct Reset : Unary<"Reset", def::ContainersRequestDef, def::Empty> {};
/// As RemoteSession has them.
struct WriteShards : Unary<"WriteShards", def::WriteShardRequestDef, def::WriteShardsResponseDef> {};
struct ReadShards : Unary<"ReadShards", def::ReadShardRequestDef, def::Empty> {};

using MasterCalls =
    Calls<CreateSession, ExtendSession, MakeCallable, ReleaseCallable, CloseSession, ListDevices, Reset,
          AreInitialized, WriteShards, ReadShards, RandomPositions, SetRandomPositions>;

}  // namespace kolo::detail
