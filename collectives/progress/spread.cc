// Why every rank that is alive hears a word that some rank alive knows: each rank that has it makes sure of
// each of its neighbours, either by that one's answer or by taking its place, which means making sure of that
// one's other neighbours. So if one end of an edge of the tree, or of a path of silent ranks in it, has the
// word, the other end has it within kAnswerAfter for each silent rank between them. Nothing depends on who
// began, nor on which ranks are gone, the root included. A slow rank that was taken for silent hears it from
// several; a word that is known already is answered, and not passed on again. An answer comes after the words
// that its sender passes on: who ends in between has answered nobody.
#include <kolo/collectives/progress/spread.h>

#include <utility>

#include <kolo/collectives/transport/rank_tree.h>

namespace kolo::detail {
namespace {

// Communication threads look every 20 ms. Too short costs a few notes, too long the time of a rank that hears
// late: within 0.3 s of a loss mpirun may end it.
constexpr auto kAnswerAfter = std::chrono::milliseconds(100);

enum SpreadNote : std::int64_t { kWord, kHeard };

std::string spread_note(SpreadNote kind, const std::string& text) {
  ByteWriter to;
  to.number(kind);
  to.text(text);
  return to.take();
}

}  // namespace

Spread::Spread(int rank, int ranks, Send send)
    : rank_(rank), ranks_(ranks), send_(std::move(send)), gone_(static_cast<std::size_t>(ranks)) {}

Spread::Word& Spread::word(const std::string& text) {
  Word& word = words_[text];
  word.has.resize(static_cast<std::size_t>(ranks_));
  return word;
}

void Spread::tell(Clock::time_point now, const std::string& text) {
  now_ = now;
  Word& told = word(text);
  if (std::exchange(told.is_told, true)) return;
  told.has.set(static_cast<std::size_t>(rank_));
  tell_neighbours_of(rank_, text, told);
  for (const int rank : std::exchange(told.to_answer, {})) send_(rank, spread_note(kHeard, text));
}

// In a loop: a path of ranks that are gone may be long.
void Spread::tell_neighbours_of(int rank, const std::string& text, Word& word) {
  std::vector<int> around = {rank};
  while (!around.empty()) {
    const int middle = around.back();
    around.pop_back();
    for (const int neighbour : neighbours_of(middle, ranks_)) {
      const auto place = static_cast<std::size_t>(neighbour);
      if (word.has.test(place)) continue;
      word.has.set(place);
      if (!gone_.test(place) && send_(neighbour, spread_note(kWord, text))) word.unanswered[neighbour] = now_;
      else around.push_back(neighbour);
    }
  }
}

std::optional<std::string> Spread::receive(int from, std::string_view note) {
  ByteReader bytes(note);
  const auto kind = bytes.number();
  std::string text = bytes.text();
  Word& heard = word(text);
  heard.has.set(static_cast<std::size_t>(from));
  heard.unanswered.erase(from);
  if (kind == kHeard) return std::nullopt;
  if (!heard.is_told) {
    heard.to_answer.push_back(from);
    return text;
  }
  send_(from, spread_note(kHeard, text));
  return std::nullopt;
}

void Spread::poll(Clock::time_point now) {
  now_ = now;
  for (auto& [text, word] : words_) {
    std::vector<int> silent;
    for (const auto& [rank, since] : word.unanswered)
      if (now - since >= kAnswerAfter) silent.push_back(rank);
    for (const int rank : silent) {
      word.unanswered.erase(rank);
      tell_neighbours_of(rank, text, word);
    }
  }
}

}  // namespace kolo::detail
