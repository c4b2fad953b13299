// Cuts a step by task: what each task runs of it, and which values go from one to another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/graph/graph_def.h>
#include <kolo/core/passes/step_graph.h>

namespace kolo::detail {

/// What one task runs of a step. Keys by the task at the other end, in the order of the graph's nodes.
struct StepPart {
  std::string task;
  GraphDef graph;  // devices filled in, nodes in the order of creation
  /// Of the master's part: one for each feed of the signature, in its order.
  std::vector<std::string> feeds;
  /// Of the master's part: one for each fetch of a value, in the order of the step's fetches; operations are
  /// among the targets of their part.
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  std::map<std::string, std::vector<std::string>> sends;     // receiver → keys
  std::map<std::string, std::vector<std::string>> receives;  // sender → keys
};

struct PartitionOptions {
  std::string master;  // task: feeds and fetches enter and leave on its CPU:0
  std::string target;  // of the session, for messages
  /// The task of the client's process, if there is one: iterators run there.
  std::string client_task = {};
  /// Of a device by its full name.
  std::function<std::uint64_t(const std::string& device)> incarnation;
  /// Where a node that runs inside of a loop is, as far as that is known: a full name, or what was asked for.
  /// Not given: what was asked for.
  std::function<std::string(const Node& node)> device_of = {};
  std::optional<std::int64_t> seed = {};  // of the session's graph
};

/// step: pruned and placed, before it is rewritten. Parts by task; the master's, where it has one, first.
///
/// A value that another task reads is sent once to each task that does, and, where it is a variable's, once
/// for each state of it that is read; a control edge is an empty tensor. What is sent, or fetched, of a
/// variable is a copy, made behind the last update that its reader sees.
/// Throws InvalidArgumentError for loops on several tasks and iterators away from the client's process,
/// UnimplementedError for ops that reduce over ranks.
std::vector<StepPart> partition(const StepGraph& step, const PartitionOptions& options);

/// `/job:ps/replica:0/task:1`, of a device's full name.
std::string task_of_device(const std::string& device);

/// The parts of a key.
struct TransferKey {
  std::string send_device;
  std::uint64_t incarnation = 0;  // of the sending device
  std::string recv_device;
  std::string tensor;  // "x:0" or "^x"
  int updates = 0;     // of the variable, that the reader sees
};
std::string to_string(const TransferKey& key);
/// Throws InvalidArgumentError for what is none.
TransferKey parse_transfer_key(const std::string& text);

}  // namespace kolo::detail
