// Brings a word from any rank to all ranks, whichever of them do not answer.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kolo/collectives/progress/rank_set.h>

namespace kolo::detail {

/// A rank tells a new word to its neighbours in the tree of ranks (parent and children), and each says that
/// it has heard it. Past a rank that does not, its other neighbours are told directly, and so on: the word
/// goes round any number of ranks that are gone. Cost: at most five words and five answers a rank, and four
/// more words for each silent rank that is met. One thread.
class Spread {
 public:
  using Clock = std::chrono::steady_clock;
  /// False: nothing can be sent there.
  using Send = std::function<bool(int to, const std::string& note)>;

  Spread(int rank, int ranks, Send send);

  /// Begins with a word, or passes on what receive() has returned. Again: nothing happens.
  void tell(Clock::time_point now, const std::string& word);
  /// A note of another rank's. The word, if this rank has not told it yet.
  std::optional<std::string> receive(int from, std::string_view note);
  /// Goes past the ranks that have had the time to answer.
  void poll(Clock::time_point now);
  /// Nobody waits for this rank's answer.
  void is_gone(int rank) { gone_.set(static_cast<std::size_t>(rank)); }

 private:
  struct Word {
    bool is_told = false;
    RankSet has;                                  // they have it from here, or have told this rank
    std::map<int, Clock::time_point> unanswered;  // since when, by rank
    std::vector<int> to_answer;                   // once it is told
  };

  Word& word(const std::string& text);
  void tell_neighbours_of(int rank, const std::string& text, Word& word);

  const int rank_, ranks_;
  const Send send_;
  Clock::time_point now_;
  RankSet gone_;
  std::map<std::string, Word> words_;
};

}  // namespace kolo::detail
