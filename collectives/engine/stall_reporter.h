// Finds out which ranks have not come to an operation that others wait for. Nothing is sent before the first
// limit has passed.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/progress/watchdog.h>

namespace kolo::detail {

/// A rank that waits too long tells the root of its set, which asks all ranks, warns once, and at the second
/// limit has the set ended. Ranks are those of the set. One thread.
class StallReporter {
 public:
  using Clock = std::chrono::steady_clock;
  struct Waiting {
    std::string name;
    std::string label;  // with the kind of operation
    Clock::time_point since;
  };
  using Send = std::function<void(int to, const std::string& message)>;
  /// This rank is ready for the operation of this name.
  using IsReady = std::function<bool(const std::string& name)>;

  /// members: the job's numbers of the ranks; root_host: for messages.
  StallReporter(int rank, std::vector<int> members, std::string root_host, Watchdog::Limits limits, Send send,
                IsReady is_ready);

  bool is_late(Clock::time_point now, Clock::time_point since) const;
  /// What this rank waits for and is late. The text of an error that ends the set, once that is decided: on
  /// the root, or here alone if the root does not answer.
  std::optional<std::string> poll(Clock::time_point now, const std::vector<Waiting>& waiting);
  void receive(Clock::time_point now, int from, std::string_view message);
  /// Root: the operation is no longer waited for.
  void decided(const std::string& name) {
    if (!cases_.empty()) cases_.erase(name);
  }

 private:
  enum class Answer : std::uint8_t { none, ready, missing };
  struct Case {
    std::string label;
    Clock::time_point since, asked;
    bool asked_at_limit = false;
    bool warned = false;
    std::vector<Answer> answers;
  };

  void open_case(const std::string& name, const std::string& label, Clock::time_point since);
  void ask(const std::string& name, Case& stalled);
  std::optional<std::string> judge(const std::string& name, Case& stalled);

  const int rank_;
  const std::vector<int> members_;
  const std::string root_host_;
  const Watchdog::Limits limits_;
  const Send send_;
  const IsReady is_ready_;
  Clock::time_point now_;
  std::map<std::string, Case> cases_;                  // root only
  std::map<std::string, Clock::time_point> reported_;  // to the root, and since when this rank waited then
};

}  // namespace kolo::detail
