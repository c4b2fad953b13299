#include <kolo/collectives/engine/row_exchange.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include <kolo/collectives/algorithms/stages.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {
namespace {

// Up to so many bytes, of all ranks together, go through memory of the engine's, where each block has its
// rank's word in front. More of them would cost more to copy than a question of its own.
constexpr std::int64_t kWithWordBytes = std::int64_t{64} << 10;
// A rank's word: how many bytes it cannot allocate, or that it has what it needs.
constexpr std::int64_t kHasMemory = -1;

std::int64_t sum_of(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// Rows without elements may be as many as there are numbers.
bool have_a_sum(const std::vector<std::int64_t>& counts) {
  std::int64_t sum = 0;
  return std::none_of(counts.begin(), counts.end(),
                      [&](std::int64_t count) { return __builtin_add_overflow(sum, count, &sum); });
}

/// A block of bytes from or to each rank, one behind the other, each behind a rank's word.
class BlocksWithWord {
 public:
  using Bytes = std::span<std::byte>;

  void resize(const std::vector<std::int64_t>& bytes) {
    std::size_t size = 0;
    for (const auto block : bytes) size += kWord + static_cast<std::size_t>(block);
    memory_.resize(size);
    blocks_.clear();
    std::byte* first = memory_.data();
    for (const auto block : bytes) {
      blocks_.emplace_back(first, kWord + static_cast<std::size_t>(block));
      first += blocks_.back().size();
    }
  }
  const std::vector<Bytes>& blocks() const { return blocks_; }
  Bytes content(int rank) const { return blocks_[rank].subspan(kWord); }
  void set_word(int rank, std::int64_t word) { std::memcpy(blocks_[rank].data(), &word, kWord); }
  std::int64_t word(int rank) const {
    std::int64_t word = 0;
    std::memcpy(&word, blocks_[rank].data(), kWord);
    return word;
  }

 private:
  static constexpr std::size_t kWord = sizeof(std::int64_t);
  std::vector<std::byte> memory_;
  std::vector<Bytes> blocks_;
};

std::span<std::byte> bytes_of(std::int64_t& number) {
  return {reinterpret_cast<std::byte*>(&number), sizeof number};
}

void copy(std::span<std::byte> to, const std::byte* from) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

std::vector<std::span<const std::byte>> read_only(const std::vector<std::span<std::byte>>& blocks) {
  return {blocks.begin(), blocks.end()};
}

/// What the stages of one execution share. t: a group's member; others have one.
struct Exchange {
  Exchange(Communicator& communicator, const std::vector<int>& members, Agreed agreed, int root, Work& work)
      : communicator(communicator), members(members), agreed(std::move(agreed)), root(root), work(work) {}

  int ranks() const { return communicator.size(); }
  int rank() const { return communicator.rank(); }
  std::size_t tensors() const { return agreed.request->tensors.size(); }
  const TensorSpec& tensor(std::size_t t = 0) const { return agreed.request->tensors[t]; }
  std::int64_t row_bytes(std::size_t t = 0) const {
    auto bytes = static_cast<std::int64_t>(size_of(tensor(t).dtype));
    for (int axis = 1; axis < tensor(t).shape.rank(); ++axis) bytes *= tensor(t).shape.dim(axis);
    return bytes;
  }
  /// By rank, as agreed.
  std::vector<std::int64_t> rows(std::size_t t = 0) const {
    std::vector<std::int64_t> rows;
    for (std::size_t place = t; place < agreed.rows.size(); place += tensors())
      rows.push_back(agreed.rows[place]);
    return rows;
  }
  /// Of all ranks, by tensor.
  std::vector<std::int64_t> all_rows() const {
    std::vector<std::int64_t> sums;
    for (std::size_t t = 0; t < tensors(); ++t) sums.push_back(sum_of(rows(t)));
    return sums;
  }
  bool is_short() const {
    std::int64_t bytes = 0;
    for (std::size_t t = 0; t < tensors(); ++t) bytes += sum_of(rows(t)) * row_bytes(t);
    return bytes <= kWithWordBytes;
  }
  std::vector<std::int64_t> bytes_of_rows(const std::vector<std::int64_t>& rows) const {
    std::vector<std::int64_t> bytes;
    for (const auto count : rows) bytes.push_back(count * row_bytes());
    return bytes;
  }
  std::byte* input(std::size_t t = 0) const {
    return agreed.operation ? agreed.operation->buffers[t].bytes : nullptr;
  }

  // Blocks of rows one behind the other.
  std::vector<std::span<std::byte>> blocks(std::byte* first, const std::vector<std::int64_t>& rows,
                                           std::size_t t = 0) const {
    std::vector<std::span<std::byte>> all;
    for (const auto count : rows) {
      all.emplace_back(first, static_cast<std::size_t>(count * row_bytes(t)));
      first += count * row_bytes(t);
    }
    return all;
  }
  std::vector<std::span<std::byte>> blocks_of_result(const std::vector<std::int64_t>& rows,
                                                     std::size_t t = 0) const {
    return blocks(results[t].raw(), rows, t);
  }

  /// rows: of the result, by tensor.
  void allocate(const std::vector<std::int64_t>& rows) {
    Allocator& allocator = agreed.operation ? *agreed.operation->allocator : cpu_allocator();
    words.assign(ranks(), kHasMemory);
    for (std::size_t t = 0; t < tensors(); ++t) try {
        results.emplace_back(tensor(t).dtype, tensor(t).shape.with_dim(0, rows[t]), allocator);
      } catch (const ResourceExhaustedError&) {
        words[rank()] = rows[t] * row_bytes(t);
        return;
      }
  }
  /// Every rank learns the words of all.
  std::shared_ptr<Collective> ask() {
    std::vector<std::span<std::byte>> all;
    for (auto& word : words) all.push_back(bytes_of(word));
    return communicator.allgather(all);
  }
  /// Once the words are known: the same on all ranks.
  bool has_memory() {
    const auto found = std::find_if(words.begin(), words.end(), [](auto word) { return word != kHasMemory; });
    if (found == words.end()) return true;
    work.error = std::make_exception_ptr(ResourceExhaustedError(
        "{} {}: rank {} cannot allocate {} bytes for the result", name(agreed.request->kind),
        agreed.request->name, members[static_cast<std::size_t>(found - words.begin())], *found));
    results.clear();
    return false;
  }
  /// The words that have come with the blocks.
  bool have_memory_as_they_say() {
    for (int r = 0; r < ranks(); ++r) words[r] = incoming.word(r);
    return has_memory();
  }
  /// In the end: nothing of the engine's refers to the results any more.
  void deliver(std::vector<std::int64_t> numbers) {
    if (work.error || !agreed.operation) return;
    agreed.operation->results = std::exchange(results, {});
    agreed.operation->numbers = std::move(numbers);
  }

  Communicator& communicator;
  const std::vector<int>& members;
  const Agreed agreed;
  const int root;
  Work& work;
  std::vector<Tensor> results;
  std::vector<std::int64_t> words;  // by rank
  std::vector<std::int64_t> sent, received;
  BlocksWithWord outgoing, incoming;
};
using ExchangePtr = std::shared_ptr<Exchange>;
using Stages = std::vector<Stage>;

/// A stage without a collective of its own.
template <typename Function>
Stage then(Function function) {
  return [function]() -> std::shared_ptr<Collective> {
    function();
    return nullptr;
  };
}

// A block has a rank's rows of one tensor behind those of another.
void pack(Exchange& x) {
  std::vector<std::int64_t> bytes(x.ranks(), 0);
  for (int r = 0; r < x.ranks(); ++r)
    for (std::size_t t = 0; t < x.tensors(); ++t)
      bytes[r] += x.agreed.rows[r * x.tensors() + t] * x.row_bytes(t);
  x.incoming.resize(bytes);
  x.incoming.set_word(x.rank(), x.words[x.rank()]);
  auto to = x.incoming.content(x.rank());
  for (std::size_t t = 0; t < x.tensors(); ++t) {
    const auto rows = x.agreed.rows[x.rank() * x.tensors() + t];
    const auto own = static_cast<std::size_t>(rows * x.row_bytes(t));
    copy(to.first(own), x.input(t));
    to = to.subspan(own);
  }
}

void unpack(Exchange& x) {
  if (!x.have_memory_as_they_say()) return;
  std::vector<std::size_t> place(x.ranks(), 0);  // in each rank's block
  for (std::size_t t = 0; t < x.tensors(); ++t) {
    const auto to = x.blocks_of_result(x.rows(t), t);
    for (int r = 0; r < x.ranks(); ++r) {
      copy(to[r], x.incoming.content(r).data() + place[r]);
      place[r] += to[r].size();
    }
  }
  x.deliver(x.agreed.rows);
}

Stages short_allgather(const ExchangePtr& x) {
  return {[x] {
            x->allocate(x->all_rows());
            pack(*x);
            return x->communicator.allgather(x->incoming.blocks());
          },
          then([x] { unpack(*x); })};
}

Stages allgather(const ExchangePtr& x) {
  if (x->is_short()) return short_allgather(x);
  Stages stages = {[x] {
    x->allocate(x->all_rows());
    return x->ask();
  }};
  for (std::size_t t = 0; t < x->tensors(); ++t)
    stages.emplace_back([x, t]() -> std::shared_ptr<Collective> {
      if (!x->has_memory()) return nullptr;
      const auto blocks = x->blocks_of_result(x->rows(t), t);
      copy(blocks[x->rank()], x->input(t));
      return x->communicator.allgather(blocks);
    });
  stages.push_back(then([x] { x->deliver(x->agreed.rows); }));
  return stages;
}

Stages gather(const ExchangePtr& x) {
  return {[x] {
            x->allocate({x->rank() == x->root ? sum_of(x->agreed.rows) : 0});
            return x->ask();
          },
          [x]() -> std::shared_ptr<Collective> {
            if (!x->has_memory()) return nullptr;
            std::vector<std::span<std::byte>> blocks;
            if (x->rank() == x->root) blocks = x->blocks_of_result(x->agreed.rows);
            const auto bytes = static_cast<std::size_t>(x->agreed.rows[x->rank()] * x->row_bytes());
            return x->communicator.gather({x->input(), bytes}, blocks, x->root);
          },
          then([x] { x->deliver(x->agreed.rows); })};
}

Stages scatter(const ExchangePtr& x) {
  const std::int64_t rows = x->tensor().shape.dim(0) / x->ranks();
  return {[x, rows] {
            x->allocate({rows});
            return x->ask();
          },
          [x, rows]() -> std::shared_ptr<Collective> {
            if (!x->has_memory()) return nullptr;
            std::vector<std::span<const std::byte>> blocks;
            if (x->rank() == x->root)
              blocks = read_only(x->blocks(x->input(), std::vector<std::int64_t>(x->ranks(), rows)));
            const Tensor& own = x->results[0];
            return x->communicator.scatter(blocks, {own.raw(), own.bytes()}, x->root);
          },
          then([x] { x->deliver({}); })};
}

std::shared_ptr<Collective> exchange_splits(const ExchangePtr& x) {
  x->sent = x->agreed.operation->splits;
  x->received.assign(x->ranks(), 0);
  std::vector<std::span<const std::byte>> out;
  std::vector<std::span<std::byte>> in;
  for (int r = 0; r < x->ranks(); ++r) {
    out.emplace_back(bytes_of(x->sent[r]));
    in.push_back(bytes_of(x->received[r]));
  }
  return x->communicator.alltoall(out, in);
}

Stages short_alltoall(const ExchangePtr& x) {
  return {[x] { return exchange_splits(x); },
          [x] {
            x->allocate({sum_of(x->received)});
            x->incoming.resize(x->bytes_of_rows(x->received));
            x->outgoing.resize(x->bytes_of_rows(x->sent));
            const auto blocks = x->blocks(x->input(), x->sent);
            for (int r = 0; r < x->ranks(); ++r) {
              x->outgoing.set_word(r, x->words[x->rank()]);
              copy(x->outgoing.content(r), blocks[r].data());
            }
            return x->communicator.alltoall(read_only(x->outgoing.blocks()), x->incoming.blocks());
          },
          then([x] {
            if (!x->have_memory_as_they_say()) return;
            const auto to = x->blocks_of_result(x->received);
            for (int r = 0; r < x->ranks(); ++r) copy(to[r], x->incoming.content(r).data());
            x->deliver(x->received);
          })};
}

Stages alltoall(const ExchangePtr& x) {
  if (x->is_short()) return short_alltoall(x);
  return {[x] { return exchange_splits(x); },
          [x] {
            x->allocate({sum_of(x->received)});
            return x->ask();
          },
          [x]() -> std::shared_ptr<Collective> {
            if (!x->has_memory()) return nullptr;
            return x->communicator.alltoall(read_only(x->blocks(x->input(), x->sent)),
                                            x->blocks_of_result(x->received));
          },
          then([x] { x->deliver(x->received); })};
}

Stages stages_of(const ExchangePtr& x) {
  switch (x->agreed.request->kind) {
    case OpKind::allgather:
    case OpKind::grouped_allgather:
    case OpKind::broadcast_object:  // all rows are the root's
    case OpKind::allgather_object: return allgather(x);
    case OpKind::gather: return gather(x);
    case OpKind::scatter: return scatter(x);
    case OpKind::alltoall: return alltoall(x);
    default: break;
  }
  throw InternalError("{} exchanges no rows", name(x->agreed.request->kind));
}

}  // namespace

std::shared_ptr<Collective> exchange_rows(Communicator& communicator, const std::vector<int>& members,
                                          const Agreed& agreed, int root, Work& work) {
  const auto x = std::make_shared<Exchange>(communicator, members, agreed, root, work);
  for (std::size_t t = 0; t < x->tensors(); ++t)
    if (!have_a_sum(x->rows(t))) {  // all ranks see it
      work.error = std::make_exception_ptr(
          InvalidArgumentError("{} {}: the ranks give [{}] rows, which are more than can be counted",
                               name(agreed.request->kind), agreed.request->name, fmt::join(x->rows(t), ",")));
      return in_stages({});
    }
  return in_stages(stages_of(x));
}

}  // namespace kolo::detail
