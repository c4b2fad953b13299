// What holds on each rank (negotiator.h tells the protocol):
//
// 1. All ranks carry out the same batches in the same order, and the cache changes nowhere else. After the
//    same number of batches, the epoch, a bit means the same name on all ranks. A bit that was sent in an
//    earlier epoch keeps the meaning that it had there, in retired_, until every child has sent something
//    later.
// 2. A name is announced by bits or in table_, never by both: an entry takes the bits in.
// 3. An operation of this rank that is undecided lies in own_bits_, own_ or held_, and only a decision takes
//    it out, once.
// 4. A rank tells its parent of a name once in each round, when all at or below it are ready.
// 5. When a rank has gone, or all has been ended, nothing more is decided.
#include <kolo/collectives/engine/negotiator.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <kolo/collectives/transport/rank_tree.h>

namespace kolo::detail {

Negotiator::Negotiator(int rank, std::vector<int> members, std::int64_t cache_capacity, Send send)
    : rank_(rank),
      members_(std::move(members)),
      children_(children_of(rank, static_cast<int>(members_.size()))),
      send_(std::move(send)),
      cache_(cache_capacity),
      bits_(children_ + 1),
      heard_(children_, 0),
      joined_below_(children_ + 1, 0),
      first_joined_below_(children_ + 1, -1) {}

int Negotiator::participant_of(int from) const { return from - first_child_of(rank_); }

int Negotiator::rank_of(int participant) const {
  return participant == self() ? rank_ : first_child_of(rank_) + participant;
}

// ---- This rank's own calls.

void Negotiator::submit(RequestPtr request, OperationPtr operation) {
  Own own{std::move(request), std::move(operation)};
  const auto refused = refused_.empty() ? refused_.end() : refused_.find(own.request->name);
  if (refused == refused_.end()) {
    keep(std::move(own));
  } else if (refused->second.come) {
    held_.push_back({std::move(own), refused->first, ""});
  } else {
    Refused& round = refused->second;
    round.come = true;
    const RequestPtr come = own.request;
    fail_refused(round.refusal, std::move(own));
    const int slot = slot_for(*come);
    if (slot >= 0) set_own_bit(slot);
    else mark(self(), Tally::of(rank_, come));
  }
}

void Negotiator::refuse(const std::string& name, const std::string& text) {
  const auto [refused, is_first] = refused_.try_emplace(name, Refused{{name, rank_, text}, true});
  if (!is_first && refused->second.come) {
    held_.push_back({{}, name, text});
    return;
  }
  refused->second.come = true;
  if (is_first && is_root()) open_refused({name, rank_, text});
  else if (is_first) up_.refusals.push_back({name, rank_, text});
  Tally nothing;
  nothing.name = name;
  mark(self(), std::move(nothing));
}

// Where the request can be announced as a bit; −1 if it must be in full.
int Negotiator::slot_for(const Request& request) {
  const bool in_full = any_joined_ || (!table_.empty() && table_.count(request.name) > 0);
  const int slot = in_full ? -1 : cache_.find(request, rank_);
  ++(slot >= 0 ? counts_.hits : counts_.misses);
  return slot;
}

void Negotiator::set_own_bit(int slot) {
  add_slot(bits_[self()], slot);
  bits_changed_ = true;
}

void Negotiator::keep(Own own) {
  const int slot = slot_for(*own.request);
  if (slot < 0) {
    const RequestPtr request = own.request;
    own_[request->name] = std::move(own);
    mark(self(), Tally::of(rank_, request));
    return;
  }
  if (static_cast<int>(own_bits_.size()) <= slot) own_bits_.resize(slot + 1);
  own_bits_[slot] = std::move(own);
  ++own_bits_set_;
  set_own_bit(slot);
}

Negotiator::Own Negotiator::take_own(int slot) {
  if (slot >= static_cast<int>(own_bits_.size()) || !own_bits_[slot].request) return {};
  --own_bits_set_;
  return std::exchange(own_bits_[slot], {});
}

Negotiator::Own Negotiator::take_own(const std::string& name) {
  if (const int slot = cache_.find(name); slot >= 0)
    if (Own own = take_own(slot); own.request) return own;
  const auto own = own_.extract(name);
  return own ? std::move(own.mapped()) : Own{};
}

bool Negotiator::is_undecided(const std::string& name) const {
  const int slot = cache_.find(name);
  return own_.count(name) > 0 ||
         (slot >= 0 && slot < static_cast<int>(own_bits_.size()) && own_bits_[slot].request);
}

void Negotiator::drop_operations() {
  for (auto& own : own_bits_) own.operation = nullptr;
  for (auto& [name, own] : own_) own.operation = nullptr;
  for (auto& held : held_) held.own.operation = nullptr;
}

void Negotiator::join(const UnnamedCalls& unnamed) {
  joined_ = true;
  up_.joined.push_back(rank_);
  note_unnamed(unnamed);
  note_joined(self(), rank_);
}

void Negotiator::gone(int rank) {
  if (!ended_ && batch_.gone < 0) batch_.gone = rank;
}

void Negotiator::end(Code code, const std::string& text) {
  if (!ended_ && !batch_.end) batch_.end = Failure{"", code, text};
}

void Negotiator::give_up(Code code, const std::string& text) {
  if (!up_.broken) up_.broken = Failure{"", code, text};
}

// ---- What is ready below this rank.

// Bits and entries of one name never stand side by side: the entry takes the bits in.
void Negotiator::mark(int participant, Tally tally) {
  const std::string name = tally.name;
  const auto [entry, is_new] = table_.try_emplace(name);
  if (is_new) {
    entry->second.tally.name = name;
    if (const int slot = cache_.find(name); slot >= 0) take_bits_of(slot);
  }
  entry->second.tally.merge(std::move(tally));
  entry->second.ready |= Mask{1} << participant;
  complete_if_ready(name);
}

void Negotiator::take_bits_of(int slot) {
  const ResponseCache::Entry& known = cache_.entry(slot);
  Entry& entry = table_[known.request->name];
  for (int participant = 0; participant <= self(); ++participant) {
    if (!has_slot(bits_[participant], slot)) continue;
    bits_[participant].reset(static_cast<std::size_t>(slot));
    entry.tally.merge(tally_of_bit(known, participant));
    entry.ready |= Mask{1} << participant;
  }
  if (Own own = take_own(slot); own.request) own_[entry.tally.name] = std::move(own);
}

Tally Negotiator::tally_of_bit(const ResponseCache::Entry& known, int participant) const {
  const int first = rank_of(participant);
  Tally tally;
  tally.name = known.request->name;
  bool has_root = false;
  const auto add = [&](int rank) {
    ++tally.contributors;
    has_root = has_root || members_[rank] == known.request->root;
    if (known.rows.empty()) return;
    const std::size_t tensors = known.request->tensors.size();
    for (std::size_t t = 0; t < tensors; ++t) tally.rows.emplace_back(rank, known.rows[rank * tensors + t]);
  };
  if (participant == self()) add(rank_);
  else for_each_below(first, size(), add);
  RequestPtr said = known.request;
  if (said->kind == OpKind::scatter && !has_root) {
    // They said nothing of the tensor, which may be another now.
    auto nothing = std::make_shared<Request>(*said);
    nothing->tensors.clear();
    said = std::move(nothing);
  }
  tally.variants.push_back({first, std::move(said)});
  return tally;
}

void Negotiator::complete_if_ready(const std::string& name) {
  const auto found = table_.find(name);
  if (((found->second.ready | joined_mask_) & all()) != all()) return;
  Entry entry = std::move(found->second);
  table_.erase(found);
  const Mask absent = all() & ~entry.ready;
  for (int participant = 0; participant <= self() && entry.tally.joined_rank < 0; ++participant)
    if ((absent >> participant & 1) != 0) entry.tally.joined_rank = first_joined_below_[participant];
  completed(std::move(entry.tally));
}

void Negotiator::completed(Tally tally) {
  if (is_root()) decide(tally);
  else up_.tallies.push_back(std::move(tally));
}

void Negotiator::note_joined(int participant, int rank) {
  if (joined_below_[participant]++ == 0) first_joined_below_[participant] = rank;
  int ranks = 1;
  if (participant != self()) {
    ranks = 0;
    for_each_below(rank_of(participant), size(), [&](int) { ++ranks; });
  }
  if (joined_below_[participant] == ranks) joined_mask_ |= Mask{1} << participant;
  if (!std::exchange(any_joined_, true)) give_up_bits();
  std::vector<std::string> names;
  for (const auto& [name, entry] : table_) names.push_back(name);
  for (const auto& name : names) complete_if_ready(name);
  if (!is_root() || ++joined_in_all_ < size()) return;
  batch_.all_joined = rank;
  batch_.unnamed = unnamed_;
}

void Negotiator::note_unnamed(const UnnamedCalls& calls) {
  UnnamedCalls& most = is_root() ? unnamed_ : up_.unnamed;
  for (std::size_t kind = 0; kind < calls.size(); ++kind) most[kind] = std::max(most[kind], calls[kind]);
}

// Sets of one size can be combined.
void Negotiator::level_bits() {
  std::size_t size = 0;
  for (const auto& bits : bits_) size = std::max(size, bits.size());
  for (auto& bits : bits_) bits.resize(size);
}

// A bit tells that every rank contributes; from now on some do not.
void Negotiator::give_up_bits() {
  level_bits();
  SlotSet any = bits_[0];
  for (const auto& bits : bits_) any |= bits;
  for_each_slot(any, [&](int slot) {
    table_[cache_.entry(slot).request->name].tally.name = cache_.entry(slot).request->name;
    take_bits_of(slot);
  });
}

void Negotiator::take_ready_bits() {
  if (!std::exchange(bits_changed_, false)) return;
  level_bits();
  SlotSet ready = bits_[0];
  for (const auto& bits : bits_) ready &= bits;
  for (auto& bits : bits_) bits -= ready;
  SlotSet& to = is_root() ? batch_.known : up_.ready;
  to.resize(std::max(to.size(), ready.size()));
  ready.resize(to.size());
  to |= ready;
}

// ---- Messages.

void Negotiator::receive(int from, std::string_view message) {
  if (rank_ != 0 && from == parent_of(rank_)) {
    send_to_children(std::string(message));
    carry_out(Batch::from_bytes(message));
  } else {
    receive_upward(participant_of(from), Upward::from_bytes(message));
  }
}

void Negotiator::receive_upward(int participant, Upward up) {
  for_each_slot(up.ready, [&](int slot) {
    const ResponseCache::Entry* const known = meaning(slot, up.epoch);
    if (known == nullptr) return;
    const bool is_retired = !cache_.has(slot) || known != &cache_.entry(slot);
    if (is_retired || any_joined_ || table_.count(known->request->name) > 0) {
      mark(participant, tally_of_bit(*known, participant));
      return;
    }
    add_slot(bits_[participant], slot);
    bits_changed_ = true;
  });
  // Before what follows is counted: the refusing rank's coming to the round may be among it.
  for (auto& refusal : up.refusals) {
    if (is_root()) open_refused(refusal);
    else up_.refusals.push_back(std::move(refusal));
  }
  for (auto& tally : up.tallies) mark(participant, std::move(tally));
  note_unnamed(up.unnamed);
  for (const int rank : up.joined) {
    up_.joined.push_back(rank);
    note_joined(participant, rank);
  }
  if (up.broken && !up_.broken) up_.broken = std::move(up.broken);
  forget_retired(participant, up.epoch);
}

void Negotiator::flush() {
  take_ready_bits();
  if (!is_root()) {
    if (up_.empty()) return;
    up_.epoch = epoch_;
    send(parent_of(rank_), std::exchange(up_, {}).to_bytes());
    return;
  }
  if (!ended_) batch_.broken = up_.broken;
  up_ = {};
  // Carrying out a batch may complete further names: those of a round that waited for the one before.
  while (!batch_.empty()) {
    const Batch batch = std::exchange(batch_, {});
    send_to_children(batch.to_bytes());
    carry_out(batch);
    take_ready_bits();
  }
}

void Negotiator::send_to_children(const std::string& message) {
  for (int child = 0; child < children_; ++child) send(first_child_of(rank_) + child, message);
}

void Negotiator::send(int to, const std::string& message) {
  ++counts_.messages;
  counts_.bytes += static_cast<std::int64_t>(message.size());
  send_(to, message);
}

// ---- The root's decisions.

void Negotiator::open_refused(const Refusal& refusal) {
  if (open_.insert(refusal.name).second) batch_.refusals.push_back(refusal);
}

void Negotiator::decide(const Tally& tally) {
  if (ended_) return;
  if (open_.erase(tally.name) > 0) {
    batch_.over.push_back(tally.name);
    return;
  }
  if (tally.variants.empty()) return;
  if (auto text = tally.disagreement(members_); !text.empty()) {
    batch_.failures.push_back({tally.name, Code::invalid_argument, std::move(text)});
    return;
  }
  const Request& request = *tally.variants[0].request;
  if (tally.joined_rank >= 0 && !is_legal_while_joined(request.kind)) {
    batch_.failures.push_back({tally.name, Code::failed_precondition,
                               fmt::format("{} {} is not supported while rank {} has joined",
                                           name(request.kind), tally.name, members_[tally.joined_rank])});
    return;
  }
  Batch::Execution execution{tally.variants[0].request, {}, tally.contributors};
  const std::size_t tensors = request.tensors.size();
  if (has_own_rows(request.kind)) execution.rows.assign(size() * tensors, 0);
  // A rank's numbers follow each other.
  for (std::size_t i = 0; i < tally.rows.size(); ++i)
    execution.rows[tally.rows[i].first * tensors + i % tensors] = tally.rows[i].second;
  batch_.executions.push_back(std::move(execution));
}

// ---- Batches, on all ranks alike.

void Negotiator::carry_out(const Batch& batch) {
  ++epoch_;
  if (batch.tuning) decisions_.push_back({.kind = Decision::Kind::tune, .tuning = *batch.tuning});
  decisions_.reserve(decisions_.size() + batch.known.count() + batch.executions.size() + 1);
  for_each_slot(batch.known, [&](int slot) {
    cache_.touch(slot);
    const auto& known = cache_.entry(slot);
    Own own = take_own(slot);
    if (!own.request && !own_.empty()) own = take_own(known.request->name);
    execute(std::move(own), known.request, known.rows, size());
  });
  for (const auto& execution : batch.executions) {
    execute(take_own(execution.request->name), execution.request, execution.rows, execution.contributors);
    if (!execution.request->named || execution.contributors < size()) continue;
    if (const int leaving = cache_.slot_to_evict(execution.request->name); leaving >= 0) retire(leaving);
    cache_.insert(execution.request, execution.rows, epoch_);
  }
  for (const auto& failure : batch.failures) {
    Own own = take_own(failure.name);
    cache_.erase(failure.name, epoch_);
    fail(failure.name, failure.code, failure.text, std::move(own));
  }
  for (const auto& refusal : batch.refusals) apply(refusal);
  for (const auto& name : batch.over) round_is_over(name);
  if (batch.all_joined >= 0) all_have_joined(batch.all_joined, batch.unnamed);
  if (batch.gone >= 0) {
    ended_ = true;
    decisions_.push_back({.kind = Decision::Kind::gone, .rank = members_[batch.gone]});
  }
  if (batch.end) {
    ended_ = true;
    decisions_.push_back({.kind = Decision::Kind::end, .code = batch.end->code, .text = batch.end->text});
  }
  if (batch.broken) {
    ended_ = true;
    decisions_.push_back(
        {.kind = Decision::Kind::broken, .code = batch.broken->code, .text = batch.broken->text});
  }
  decisions_.push_back({.kind = Decision::Kind::end_of_batch});
}

void Negotiator::execute(Own own, const RequestPtr& request, const std::vector<std::int64_t>& rows,
                         int contributors) {
  Decision& decision = decisions_.emplace_back();
  decision.operation = std::move(own.operation);
  decision.request = request;
  decision.rows = rows;
  decision.contributors = contributors;
}

void Negotiator::fail(const std::string& name, Code code, const std::string& text, Own own) {
  decisions_.push_back({.kind = Decision::Kind::fail,
                        .operation = std::move(own.operation),
                        .name = name,
                        .code = code,
                        .text = text});
}

void Negotiator::fail_refused(const Refusal& refusal, Own own) {
  fail(refusal.name, Code::failed_precondition,
       fmt::format("rank {} refused {}: {}", members_[refusal.rank], refusal.name, refusal.text),
       std::move(own));
}

// The slot's name has to leave it. What was heard by its bit counts as if it had been told in full, here
// and on all ranks; bits that are on their way keep their meaning until every child has sent something later.
void Negotiator::retire(int slot) {
  const ResponseCache::Entry& leaving = cache_.entry(slot);
  const std::string name = leaving.request->name;
  if (children_ > 0) retired_.push_back({slot, epoch_, leaving});
  const bool any =
      std::any_of(bits_.begin(), bits_.end(), [&](const auto& bits) { return has_slot(bits, slot); });
  if (any) {
    table_[name].tally.name = name;
    take_bits_of(slot);
    complete_if_ready(name);
  } else if (Own own = take_own(slot); own.request) {
    own_[name] = std::move(own);
  }
  cache_.erase(name, epoch_);
}

// What a bit means that was sent in that epoch; nullptr: nothing any more.
const ResponseCache::Entry* Negotiator::meaning(int slot, std::int64_t epoch) const {
  for (const Retired& retired : retired_)
    if (retired.slot == slot && retired.until > epoch) return &retired.entry;
  return cache_.has(slot) && cache_.entry(slot).changed <= epoch ? &cache_.entry(slot) : nullptr;
}

void Negotiator::forget_retired(int participant, std::int64_t epoch) {
  heard_[participant] = epoch;
  if (retired_.empty()) return;
  const std::int64_t last = *std::min_element(heard_.begin(), heard_.end());
  std::erase_if(retired_, [&](const Retired& retired) { return retired.until <= last; });
}

void Negotiator::apply(const Refusal& refusal) {
  const auto [refused, is_new] = refused_.try_emplace(refusal.name, Refused{refusal, false});
  if (!is_new) return;  // this rank refused it as well
  Own own = take_own(refusal.name);
  if (!own.request) return;
  refused->second.come = true;
  fail_refused(refusal, std::move(own));
}

void Negotiator::round_is_over(const std::string& name) {
  refused_.erase(name);
  for (auto& held : std::exchange(held_, {})) {
    if (held.name != name) held_.push_back(std::move(held));
    else if (held.own.request) submit(std::move(held.own.request), std::move(held.own.operation));
    else refuse(held.name, held.text);
  }
}

void Negotiator::all_have_joined(int last, const UnnamedCalls& unnamed) {
  joined_ = any_joined_ = false;
  joined_mask_ = 0;
  joined_in_all_ = 0;
  joined_below_.assign(joined_below_.size(), 0);
  decisions_.push_back({.kind = Decision::Kind::all_joined, .rank = members_[last], .unnamed = unnamed});
}

}  // namespace kolo::detail
