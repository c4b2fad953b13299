#include <tests/support/order_checker.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <istream>
#include <map>
#include <set>
#include <stdexcept>

namespace kolo::testing {
namespace {

using Address = std::uint64_t;
using Clock = std::vector<std::uint64_t>;  // by actor: how many of its uses come before

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text, begin, end - begin);
  }
  return parts;
}

void join(Clock& clock, const Clock& other) {
  clock.resize(std::max(clock.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

struct Use {
  std::size_t actor = 0;
  std::uint64_t number = 0;  // of the actor's; 0: none
  const std::string* name = nullptr;
  bool writes = false;
};

// One stretch of memory: who wrote it last, and who has read it since.
struct Stretch {
  Address end = 0;
  Use writer = {};
  std::vector<Use> readers = {};
};

class Checker {
 public:
  std::vector<std::string> run(const Log& log) {
    for (const LogLine& line : log) {
      const auto& f = line.fields;
      if (line.kind == "record") tokens_[f[1]] = clock_of(f[0]);
      else if (line.kind == "wait") wait(clock_of(f[0]), f[1]);
      else if (line.kind == "begin") wait(clock_of(f[0]) = {}, f[1]);
      else if (line.kind == "free") free(f[0], f[1]);
      else use(f[0], f[1], f[2], f[3], f[4]);
    }
    return std::move(found_);
  }

 private:
  std::size_t index_of(const std::string& actor) {
    const auto [at, is_new] = actors_.emplace(actor, actors_.size());
    if (is_new) names_.push_back(actor), clocks_.emplace_back(), uses_.push_back(0);
    return at->second;
  }
  Clock& clock_of(const std::string& actor) { return clocks_[index_of(actor)]; }

  void wait(Clock& clock, const std::string& tokens) {
    for (const std::string& token : split(tokens, ' '))
      if (const auto at = tokens_.find(token); at != tokens_.end()) join(clock, at->second);
  }

  Use next_use(const std::string& actor, const std::string& name, bool writes) {
    const std::size_t index = index_of(actor);
    Clock& clock = clocks_[index];
    clock.resize(std::max(clock.size(), index + 1));
    clock[index] = ++uses_[index];
    return {index, clock[index], &name, writes};
  }

  void use(const std::string& actor, const std::string& thread, const std::string& name,
           const std::string& reads, const std::string& writes) {
    index_of(thread);  // clocks move when there is a new one
    Clock& clock = clock_of(actor);
    join(clock, clock_of(thread));
    Use use = next_use(actor, name, false);
    for_each_stretch(reads, [&](Address begin, Stretch& stretch) {
      check(stretch.writer, use, begin, stretch.end);
      std::erase_if(stretch.readers, [&](const Use& r) { return comes_before(r, use); });
      stretch.readers.push_back(use);
    });
    use.writes = true;
    for_each_stretch(writes, [&](Address begin, Stretch& stretch) {
      check(stretch.writer, use, begin, stretch.end);
      for (const Use& reader : stretch.readers) check(reader, use, begin, stretch.end);
      stretch.writer = use;
      stretch.readers.clear();
    });
  }

  void free(const std::string& thread, const std::string& range) {
    static const std::string name = "what frees it";
    use(thread, thread, name, "", range);
    for_each_stretch(range, [](Address, Stretch& stretch) { stretch.writer = {}; });
  }

  bool comes_before(const Use& before, const Use& now) const {
    const Clock& clock = clocks_[now.actor];
    return before.actor < clock.size() && clock[before.actor] >= before.number;
  }

  void check(const Use& before, const Use& now, Address begin, Address end) {
    if (before.number == 0 || comes_before(before, now)) return;
    const auto& [first, second] = std::pair(names_[before.actor], names_[now.actor]);
    if (!told_.insert({*before.name, first, *now.name, second}).second) return;
    const auto word = [](const Use& use) { return use.writes ? "writes" : "reads"; };
    found_.push_back(fmt::format(
        "{} ({}, {}) and {} ({}, {}) use {:#x}+{} without an order; missing: {} waits for what {} has been "
        "given with {}",
        *before.name, word(before), first, *now.name, word(now), second, begin, end - begin, second, first,
        *before.name));
  }

  // Cuts stretches at the ends of the ranges, so that each is used as a whole.
  template <typename Visit>
  void for_each_stretch(const std::string& ranges, const Visit& visit) {
    for (const std::string& range : split(ranges, ' ')) {
      const auto plus = range.find('+');
      const Address begin = std::stoull(range, nullptr, 16);
      const Address end = begin + std::stoull(range.substr(plus + 1));
      cut(begin);
      cut(end);
      for (Address at = begin; at < end;) {
        auto next = memory_.lower_bound(at);
        const Address gap_end = next == memory_.end() ? end : std::min(end, next->first);
        if (at < gap_end) next = memory_.emplace(at, Stretch{.end = gap_end}).first;
        visit(at, next->second);
        at = next->second.end;
      }
    }
  }

  void cut(Address at) {
    auto behind = memory_.lower_bound(at);
    if (behind == memory_.begin()) return;
    Stretch& before = std::prev(behind)->second;
    if (before.end <= at) return;
    memory_.emplace(at, before);
    before.end = at;
  }

  std::map<std::string, std::size_t> actors_;
  std::vector<std::string> names_;
  std::vector<Clock> clocks_;
  std::vector<std::uint64_t> uses_;
  std::map<std::string, Clock> tokens_;
  std::map<Address, Stretch> memory_;  // by where it begins
  std::set<std::vector<std::string>> told_;
  std::vector<std::string> found_;
};

}  // namespace

Log read_log(std::istream& lines) {
  static const std::map<std::string, std::size_t> kinds = {
      {"use", 5}, {"record", 2}, {"wait", 2}, {"begin", 2}, {"free", 2}};
  Log log;
  for (std::string line; std::getline(lines, line);) {
    auto fields = split(line, '\t');
    const auto kind = fields.empty() ? kinds.end() : kinds.find(fields[0]);
    const auto full = kind == kinds.end() ? 0 : kind->second + 1;
    if (fields.size() > full || fields.size() < std::min<std::size_t>(full, 4))
      throw std::runtime_error("no line of a log: " + line);
    fields.erase(fields.begin());
    fields.resize(kind->second);  // where the last are empty
    log.push_back({kind->first, std::move(fields)});
  }
  return log;
}

Log read_log_file(const std::string& file) {
  std::ifstream lines(file);
  if (!lines) throw std::runtime_error(file + " cannot be read");
  return read_log(lines);
}

std::vector<std::string> conflicts(const Log& log) { return Checker().run(log); }

}  // namespace kolo::testing
