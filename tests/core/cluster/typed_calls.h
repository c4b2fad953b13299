// Calls of rpc/calls.h by values instead of messages.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/cluster/master/master.h>
#include <kolo/core/cluster/rpc/shard_messages_internal.h>
#include <kolo/core/cluster/worker/part.h>
#include <kolo/core/cluster/worker/worker_session.h>

namespace kolo::detail {

inline TaskStatus status_of(Worker& worker, const Deadline& deadline = {}) {
  return from_def(worker.call<GetStatus>({}, deadline));
}
inline void create_session(Worker& worker, const WorkerSessionRequest& request,
                           const Deadline& deadline = {}) {
  def::WorkerSessionRequestDef message;
  message.set_session(request.session);
  message.set_master(request.master);
  message.set_master_incarnation(request.master_incarnation);
  *message.mutable_config() = to_def(request.config);
  worker.call<CreateWorkerSession>(message, deadline);
}
inline void delete_session(Worker& worker, const std::string& session, const Deadline& deadline = {}) {
  worker.call<DeleteWorkerSession>(of_session(session), deadline);
}
inline std::uint64_t register_part(Worker& worker, const std::string& session, PartRequest part,
                                   const Deadline& deadline = {}) {
  def::RegisterGraphRequestDef message;
  message.set_session(session);
  put_strings(*message.mutable_feeds(), part.feeds);
  put_strings(*message.mutable_fetches(), part.fetches);
  put_strings(*message.mutable_targets(), part.targets);
  return worker.call<RegisterGraph>(message, std::move(part.graph), deadline).part();
}
inline void deregister_part(Worker& worker, const std::string& session, std::uint64_t part,
                            const Deadline& deadline = {}) {
  def::DeregisterGraphRequestDef message;
  message.set_session(session);
  message.set_part(part);
  worker.call<DeregisterGraph>(message, deadline);
}
inline void cleanup_containers(Worker& worker, const std::vector<std::string>& containers,
                               const Deadline& deadline = {}) {
  def::ContainersRequestDef message;
  put_strings(*message.mutable_containers(), containers);
  worker.call<CleanupAll>(message, deadline);
}
inline WrittenShard write_shard(Worker& worker, const std::string& session, const ShardPlace& place,
                                const std::vector<VariableKey>& keys,
                                const std::vector<SavedVariable>& variables, const Deadline& deadline = {}) {
  return from_def(worker.call<WriteShard>(to_def(session, place, keys, variables), deadline),
                  variables.size(), false);
}
inline void read_shard(Worker& worker, const std::string& session, const std::vector<VariableKey>& keys,
                       const std::vector<SavedVariable>& variables, const Deadline& deadline = {}) {
  worker.call<ReadShard>(to_def(session, keys, variables), deadline);
}

inline def::CreateSessionResponseDef create_session(Master& master, GraphDef graph,
                                                    const SessionConfig& config, const Deadline& deadline) {
  def::CreateSessionRequestDef message;
  *message.mutable_config() = to_def(config);
  return master.call<CreateSession>(message, std::move(graph), deadline);
}
inline std::int64_t extend_session(Master& master, const std::string& session, std::int64_t version,
                                   GraphDef nodes, const Deadline& deadline) {
  def::ExtendSessionRequestDef message;
  message.set_session(session);
  message.set_version(version);
  return master.call<ExtendSession>(message, std::move(nodes), deadline).version();
}
inline std::int64_t make_callable(Master& master, const std::string& session, const StepNames& names,
                                  const Deadline& deadline) {
  def::MakeCallableRequestDef message;
  message.set_session(session);
  *message.mutable_names() = to_def(names);
  return master.call<MakeCallable>(message, deadline).callable();
}
inline void release_callable(Master& master, const std::string& session, std::int64_t callable,
                             const Deadline& deadline) {
  def::CallableDef message;
  message.set_session(session);
  message.set_callable(callable);
  master.call<ReleaseCallable>(message, deadline);
}
inline void close_session(Master& master, const std::string& session, const Deadline& deadline) {
  master.call<CloseSession>(of_session(session), deadline);
}
inline std::vector<DeviceAttributes> list_devices(Master& master, const std::string& session,
                                                  const Deadline& deadline) {
  const auto answer = master.call<ListDevices>(of_session(session), deadline);
  std::vector<DeviceAttributes> devices;
  for (const auto& device : answer.devices()) devices.push_back(from_def(device));
  return devices;
}
inline void reset(Master& master, const std::vector<std::string>& containers, const SessionConfig& config,
                  const Deadline& deadline) {
  def::ContainersRequestDef message;
  put_strings(*message.mutable_containers(), containers);
  *message.mutable_config() = to_def(config);
  master.call<Reset>(message, deadline);
}
inline std::vector<WrittenShard> write_shards(Master& master, const std::string& session,
                                              const ShardPlace& place,
                                              const std::vector<SavedVariable>& variables,
                                              const Deadline& deadline) {
  const auto answer = master.call<WriteShards>(to_def(session, place, {}, variables), deadline);
  std::vector<WrittenShard> shards;
  for (const auto& shard : answer.shards()) shards.push_back(from_def(shard, variables.size(), true));
  return shards;
}
inline void read_shards(Master& master, const std::string& session,
                        const std::vector<SavedVariable>& variables, const Deadline& deadline) {
  master.call<ReadShards>(to_def(session, {}, variables), deadline);
}

// Of both: `variables` are keys or, to a master, names.
template <typename Callee, typename Variable>
std::vector<bool> are_initialized(Callee& callee, const std::string& session,
                                  const std::vector<Variable>& variables, const Deadline& deadline) {
  return from_def(callee.template call<AreInitialized>(to_def(session, variables), deadline),
                  variables.size());
}
template <typename Callee>
std::map<std::string, std::uint64_t> random_positions(Callee& callee, const std::string& session,
                                                      const Deadline& deadline) {
  return positions_from(callee.template call<RandomPositions>(of_session(session), deadline));
}
template <typename Callee>
void set_random_positions(Callee& callee, const std::string& session,
                          const std::map<std::string, std::uint64_t>& positions, const Deadline& deadline) {
  callee.template call<SetRandomPositions>(to_def(session, positions), deadline);
}

}  // namespace kolo::detail
