// What a step becomes when it is cut by task, and what is to be known for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/graph/graph_def.h>

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

}  // namespace kolo::detail
