#include <kolo/collectives/engine/messages.h>

namespace kolo::detail {
namespace {

template <typename Items, typename Function>
void write_each(ByteWriter& to, const Items& items, const Function& write_one) {
  to.number(static_cast<std::int64_t>(items.size()));
  for (const auto& item : items) write_one(item);
}

template <typename Items, typename Function>
void read_each(ByteReader& from, Items& items, const Function& read_one) {
  items.resize(static_cast<std::size_t>(from.number()));
  for (auto& item : items) item = read_one();
}

void write_refusals(ByteWriter& to, const std::vector<Refusal>& refusals) {
  write_each(to, refusals, [&](const Refusal& refusal) {
    to.text(refusal.name);
    to.number(refusal.rank);
    to.text(refusal.text);
  });
}

void read_refusals(ByteReader& from, std::vector<Refusal>& refusals) {
  read_each(from, refusals, [&] {
    Refusal refusal;
    refusal.name = from.text();
    refusal.rank = from.integer();
    refusal.text = from.text();
    return refusal;
  });
}

void write_failure(ByteWriter& to, const Failure& failure) {
  to.text(failure.name);
  to.number(static_cast<int>(failure.code));
  to.text(failure.text);
}

Failure read_failure(ByteReader& from) {
  Failure failure;
  failure.name = from.text();
  failure.code = static_cast<Code>(from.number());
  failure.text = from.text();
  return failure;
}

void write(ByteWriter& to, const UnnamedCalls& calls) {
  for (const auto count : calls) to.number(count);
}

void read_unnamed(ByteReader& from, UnnamedCalls& calls) {
  for (auto& count : calls) count = from.number();
}

void write(ByteWriter& to, const SlotSet& set) {
  std::vector<SlotSet::block_type> words(set.num_blocks());
  boost::to_block_range(set, words.begin());
  while (!words.empty() && words.back() == 0) words.pop_back();
  to.number(static_cast<std::int64_t>(words.size()));
  for (const auto word : words) to.word(word);
}

SlotSet read_slots(ByteReader& from) {
  std::vector<SlotSet::block_type> words(static_cast<std::size_t>(from.number()));
  for (auto& word : words) word = from.word();
  return SlotSet(words.begin(), words.end());
}

}  // namespace

std::string Upward::to_bytes() const {
  ByteWriter to;
  to.number(epoch);
  write(to, ready);
  write_each(to, tallies, [&](const Tally& tally) { tally.write(to); });
  write_refusals(to, refusals);
  write_each(to, joined, [&](int rank) { to.number(rank); });
  if (!joined.empty()) write(to, unnamed);
  to.number(broken ? 1 : 0);
  if (broken) write_failure(to, *broken);
  return to.take();
}

Upward Upward::from_bytes(std::string_view bytes) {
  ByteReader from(bytes);
  Upward up;
  up.epoch = from.number();
  up.ready = read_slots(from);
  read_each(from, up.tallies, [&] { return Tally::read(from); });
  read_refusals(from, up.refusals);
  read_each(from, up.joined, [&] { return from.integer(); });
  if (!up.joined.empty()) read_unnamed(from, up.unnamed);
  if (from.number() != 0) up.broken = read_failure(from);
  return up;
}

std::string Batch::to_bytes() const {
  ByteWriter to;
  write(to, known);
  write_each(to, executions, [&](const Execution& execution) {
    detail::write(to, *execution.request);
    write_each(to, execution.rows, [&](std::int64_t rows) { to.number(rows); });
    to.number(execution.contributors);
  });
  write_each(to, failures, [&](const Failure& failure) { write_failure(to, failure); });
  write_refusals(to, refusals);
  write_each(to, over, [&](const std::string& name) { to.text(name); });
  to.number(all_joined);
  if (all_joined >= 0) write(to, unnamed);
  to.number(gone);
  to.number((end ? 1 : 0) + (tuning ? 2 : 0) + (broken ? 4 : 0));
  if (end) write_failure(to, *end);
  if (broken) write_failure(to, *broken);
  if (tuning) {
    to.number(tuning->fusion_bytes);
    to.real(tuning->cycle_ms);
  }
  return to.take();
}

Batch Batch::from_bytes(std::string_view bytes) {
  ByteReader from(bytes);
  Batch batch;
  batch.known = read_slots(from);
  read_each(from, batch.executions, [&] {
    Execution execution;
    execution.request = std::make_shared<const Request>(read_request(from));
    read_each(from, execution.rows, [&] { return from.number(); });
    execution.contributors = from.integer();
    return execution;
  });
  read_each(from, batch.failures, [&] { return read_failure(from); });
  read_refusals(from, batch.refusals);
  read_each(from, batch.over, [&] { return from.text(); });
  batch.all_joined = from.integer();
  if (batch.all_joined >= 0) read_unnamed(from, batch.unnamed);
  batch.gone = from.integer();
  const auto flags = from.number();
  if ((flags & 1) != 0) batch.end = read_failure(from);
  if ((flags & 4) != 0) batch.broken = read_failure(from);
  if ((flags & 2) != 0) {
    batch.tuning.emplace();
    batch.tuning->fusion_bytes = from.number();
    batch.tuning->cycle_ms = from.real();
  }
  return batch;
}

}  // namespace kolo::detail
