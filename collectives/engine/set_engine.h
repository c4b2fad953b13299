// The engine of one process set, on one of its ranks: from the callers' queue through negotiation and fusion
// to the communication thread.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/algorithms/communicator.h>
#include <kolo/collectives/engine/fusion.h>
#include <kolo/collectives/engine/negotiator.h>
#include <kolo/collectives/engine/observer.h>
#include <kolo/collectives/engine/options.h>
#include <kolo/collectives/engine/tensor_queue.h>
#include <kolo/collectives/engine/trace.h>
#include <kolo/collectives/engine/work.h>
#include <kolo/collectives/progress/comm_thread.h>
#include <kolo/collectives/progress/stall_reporter.h>

namespace kolo::detail {

class SetEngine {
 public:
  enum class Message : std::uint8_t { negotiation, stall };
  /// What it is told of the world. The thread outlives it.
  struct Setting {
    int id = 0;
    std::vector<int> members;                    // the job's numbers of the ranks, in the set's order
    int rank = 0;                                // this one's in the set
    std::shared_ptr<Communicator> communicator;  // nullptr for one rank, as what follows
    CommThread* thread = nullptr;
    int channel = 0;
    Allocator* allocator = &cpu_allocator();                                   // of the fusion buffer
    std::span<const std::string> hosts;                                        // by the job's number
    std::function<void(int to, Message kind, const std::string& bytes)> post;  // to: in the set
    /// Carries out the process_set operation that all ranks have agreed on; returns the sets' ids.
    std::function<std::vector<std::int64_t>(const std::string& payload)> make_sets;
  };

  SetEngine(Setting setting, const EngineOptions& options);
  ~SetEngine();
  SetEngine(const SetEngine&) = delete;
  SetEngine& operator=(const SetEngine&) = delete;

  int id() const { return setting_.id; }
  const std::vector<int>& members() const { return setting_.members; }
  int rank() const { return setting_.rank; }
  int size() const { return static_cast<int>(setting_.members.size()); }

  // Callers; any thread.
  std::string next_name(OpKind kind) { return queue_.next_name(kind); }
  /// Throws as TensorQueue::add.
  void submit(const OperationPtr& operation);
  /// The quick way for an operation whose name comes again. False, and nothing has happened: make a request,
  /// and submit().
  bool submit_again(const OperationPtr& operation, const CallAgain& call);
  /// This rank's call failed with this text.
  void refuse(const std::string& name, const std::string& text);
  void wait_until_idle();
  EngineStatistics statistics() const;

  // The communication thread.
  Resident::State advance(TensorQueue::Clock::time_point now);
  void receive(TensorQueue::Clock::time_point now, int from, Message kind, std::string_view bytes);
  /// From the next batch on, on all ranks. Root only.
  void tune(const Tuning& tuning) {
    negotiator_.tune(tuning);
    received_ = true;  // to be sent
  }
  /// Everything pending, and to come, ends with this error.
  void break_off(const std::exception_ptr& error);
  /// The same on all ranks of the set: its communication has failed here.
  void fail(const std::exception_ptr& error);
  /// From now on nothing is begun.
  void begin_close() { closing_ = true; }
  /// Ends what is pending in AbortedError. From then on this rank says that it has left, if it is asked.
  void close();

 private:
  using Clock = TensorQueue::Clock;

  void take_new();
  void act(Decision& decision);
  void apply(const Tuning& tuning);
  void begin(Decision& decision);
  void begin_alone(Agreed agreed);
  void reduce_agreed();
  WorkPtr reduction_of(const std::vector<Piece>& run, const AgreedBatch& batch);
  void send(const WorkPtr& work);
  void finished(Work& work, const std::exception_ptr& error);
  void finish(std::span<EngineOperation* const> operations, const std::exception_ptr& error);
  void finish(const OperationPtr& operation, const std::exception_ptr& error);
  std::shared_ptr<Buffer> fusion_buffer();
  void look_for_stalls(Clock::time_point now);
  Standing standing_of(const std::string& name) const;
  int root_of(const Request& request) const;

  const Setting setting_;
  const std::shared_ptr<EngineCompletion> completion_ = std::make_shared<EngineCompletion>();
  TensorQueue queue_;
  EngineTrace trace_;

  // The communication thread's own.
  std::int64_t fusion_bytes_;
  Clock::duration cycle_;
  Negotiator negotiator_;
  StallReporter stalls_;
  std::vector<TensorQueue::Item> taken_;
  std::vector<Decision> decisions_;
  OperationPtr join_;
  std::vector<Agreed> agreed_reductions_;  // of the batch that is being carried out
  std::shared_ptr<Buffer> fusion_buffer_;
  std::int64_t sequence_ = 0;  // of operations
  std::int64_t ticket_ = 0;    // of executions
  bool closing_ = false;
  bool broken_ = false;
  bool received_ = false;  // something, since the last turn
  Clock::time_point last_look_;

  // Written by the communication thread, read by anybody.
  std::atomic<std::int64_t> operations_{0}, reductions_{0}, reduced_tensors_{0};
  std::atomic<std::int64_t> fusion_bytes_now_, tuned_at_{-1};
  std::atomic<double> cycle_ms_now_;
  std::atomic<std::int64_t> messages_{0}, message_bytes_{0}, hits_{0}, misses_{0};
};

}  // namespace kolo::detail
