// The negotiators of many ranks in one process. Messages of one pair of ranks arrive in order, those of
// different pairs in random order.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/engine/negotiator.h>

namespace kolo::detail {

inline RequestPtr allreduce_request(const std::string& name, const Shape& shape = {4},
                                    DType dtype = DType::f32) {
  Request request;
  request.name = name;
  request.tensors = {{dtype, shape}};
  return std::make_shared<const Request>(request);
}

inline RequestPtr request_of(OpKind kind, const std::string& name, const Shape& shape = {4}, int root = -1) {
  Request request = *allreduce_request(name, shape);
  request.kind = kind;
  request.root = root;
  return std::make_shared<const Request>(request);
}

class SimulatedNegotiation {
 public:
  SimulatedNegotiation(int ranks, std::int64_t cache_capacity, std::uint32_t seed = 1) : random_(seed) {
    std::vector<int> members(ranks);
    std::iota(members.begin(), members.end(), 0);
    decisions_.resize(ranks);
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.push_back(std::make_unique<Negotiator>(rank, members, cache_capacity,
                                                    [this, rank](int to, const std::string& bytes) {
                                                      mail_[{rank, to}].push_back(bytes);
                                                    }));
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Negotiator& rank(int rank) { return *ranks_[rank]; }
  std::mt19937& random() { return random_; }

  void submit_everywhere(const RequestPtr& request) {
    for (auto& rank : ranks_) rank->submit(request);
  }
  void flush(int rank) {
    ranks_[rank]->flush();
    collect(rank);
  }
  /// One message, if there is one.
  bool deliver_one() {
    std::vector<std::pair<int, int>> waiting;
    for (const auto& [link, messages] : mail_)
      if (!messages.empty()) waiting.push_back(link);
    if (waiting.empty()) return false;
    const auto link = waiting[random_() % waiting.size()];
    const std::string message = std::move(mail_[link].front());
    mail_[link].pop_front();
    ranks_[link.second]->receive(link.first, message);
    flush(link.second);
    return true;
  }
  /// All ranks send what they have, in random order, until nothing is on its way.
  void settle() {
    std::vector<int> order(size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int rank : order) flush(rank);
    while (deliver_one()) {
    }
  }
  std::int64_t messages() const {
    std::int64_t sum = 0;
    for (const auto& rank : ranks_) sum += rank->counts().messages;
    return sum;
  }
  /// How many ranks it has sent to or heard from.
  std::size_t partners(int rank) const {
    std::set<int> found;
    for (const auto& [link, messages] : mail_) {
      if (link.first == rank) found.insert(link.second);
      if (link.second == rank) found.insert(link.first);
    }
    return found.size();
  }
  /// Empties it. Without the marks between batches.
  std::vector<Decision> decisions(int rank) { return std::exchange(decisions_[rank], {}); }
  /// "x", "x!error", … of this rank's decisions since the last time.
  std::vector<std::string> story(int rank) {
    std::vector<std::string> lines;
    for (const auto& decision : decisions(rank)) switch (decision.kind) {
        case Decision::Kind::execute: lines.push_back(decision.request->name); break;
        case Decision::Kind::fail: lines.push_back(decision.name + "!" + decision.text); break;
        case Decision::Kind::all_joined: lines.push_back("joined " + std::to_string(decision.rank)); break;
        case Decision::Kind::gone: lines.push_back("gone " + std::to_string(decision.rank)); break;
        case Decision::Kind::broken: lines.push_back("broken " + decision.text); break;
        case Decision::Kind::end: lines.push_back("end " + decision.text); break;
        default: break;
      }
    return lines;
  }

 private:
  void collect(int rank) {
    std::vector<Decision> taken;
    ranks_[rank]->take_decisions(taken);
    for (auto& decision : taken)
      if (decision.kind != Decision::Kind::end_of_batch) decisions_[rank].push_back(std::move(decision));
  }

  std::mt19937 random_;
  std::map<std::pair<int, int>, std::deque<std::string>> mail_;
  std::vector<std::unique_ptr<Negotiator>> ranks_;
  std::vector<std::vector<Decision>> decisions_;
};

}  // namespace kolo::detail
