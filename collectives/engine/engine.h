// The engine of this process: its process sets, and the mail between the ranks' engines.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <kolo/collectives/engine/set_engine.h>
#include <kolo/collectives/transport/mailbox.h>
#include <kolo/core/base/mutex.h>

namespace kolo::detail {

class Engine final : public Resident {
 public:
  /// For one rank: no thread, no traffic.
  explicit Engine(const EngineOptions& options);
  /// thread, whose resident it becomes, and mail outlive release(). hosts: of all ranks. On the
  /// communication thread.
  Engine(const EngineOptions& options, std::vector<std::string> hosts, CommThread& thread, Mailbox& mail,
         std::shared_ptr<Communicator> world, Allocator& fusion_memory);

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Callers; any thread.
  /// Throws InvalidArgumentError `rank <r> is not in process set <id>`, or where there is no such set.
  std::shared_ptr<SetEngine> set(int id) KOLO_EXCLUDES(mutex_);
  /// The job's numbers of a set's ranks. Throws InvalidArgumentError if there is no such set.
  std::vector<int> members(int id) KOLO_EXCLUDES(mutex_);

  // The communication thread; for one rank, any.
  State advance(std::chrono::steady_clock::time_point now) override;
  /// Nothing is begun any more.
  void begin_close();
  /// Ends what is pending and tells the others; advance() then still passes on what others send.
  void close();
  /// Frees the communicators.
  void release();

 private:
  struct Set {
    std::vector<int> members;
    std::shared_ptr<SetEngine> engine;  // nullptr on ranks outside it
  };
  struct Early {
    int from;
    std::string text;
  };

  State advance(SetEngine& engine, std::chrono::steady_clock::time_point now);
  void end(SetEngine& engine, const std::exception_ptr& error);
  void dispatch(std::chrono::steady_clock::time_point now, int from, const std::string& text);
  std::vector<std::int64_t> make_sets(const std::string& payload);
  int make_set(std::vector<int> members);
  SetEngine::Setting setting(int id, std::vector<int> members);

  const EngineOptions options_;
  const std::vector<std::string> hosts_;
  const int rank_;
  const int size_;
  CommThread* const thread_ = nullptr;
  Mailbox* const mail_ = nullptr;
  Allocator* const fusion_memory_ = nullptr;
  std::shared_ptr<Communicator> world_;              // its messages are those of set 0
  std::map<int, std::vector<Early>> early_;          // for sets that other ranks have made already
  std::vector<std::shared_ptr<SetEngine>> engines_;  // of sets_, for the communication thread
  std::set<int> failed_;                             // ids of the sets whose other ranks have been told

  Mutex mutex_;
  std::map<int, Set> sets_ KOLO_GUARDED_BY(mutex_);
  int next_id_ KOLO_GUARDED_BY(mutex_) = 0;
};

/// What eager callers use. Throws FailedPreconditionError `kolo is not initialised; …`. Any thread.
std::shared_ptr<Engine> current_engine();
/// By init and shutdown (nullptr): the engine belongs to the job's runtime.
void set_current_engine(std::shared_ptr<Engine> engine);

/// "0,2;1,3" for {{0, 2}, {1, 3}}.
std::string to_text(const std::vector<std::vector<int>>& lists);
/// Of a process_set operation: make these sets, or remove that one.
std::string payload_to_make(const std::vector<std::vector<int>>& lists);
std::string payload_to_remove(int id);

}  // namespace kolo::detail
