#include <kolo/collectives/engine/operation.h>

#include <fmt/format.h>
#include <boost/pool/pool_alloc.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace kolo::detail {
namespace {

constexpr std::array<const char*, kOpKinds> kOpNames = {"allreduce",
                                                        "grouped_allreduce",
                                                        "reduce_scatter",
                                                        "grouped_reduce_scatter",
                                                        "allgather",
                                                        "broadcast",
                                                        "alltoall",
                                                        "gather",
                                                        "scatter",
                                                        "barrier",
                                                        "join",
                                                        "process_set",
                                                        "broadcast_object",
                                                        "allgather_object",
                                                        "grouped_allgather",
                                                        "grouped_broadcast"};

bool is_group(OpKind kind) {
  return kind == OpKind::grouped_allreduce || kind == OpKind::grouped_reduce_scatter ||
         kind == OpKind::grouped_allgather || kind == OpKind::grouped_broadcast;
}

// In a scatter only the root has a tensor to show.
bool says_nothing_of_tensors(const Request& request) {
  return request.kind == OpKind::scatter && request.tensors.empty();
}

bool agree_beyond_rows(const Shape& a, const Shape& b) {
  const auto &x = a.dims(), &y = b.dims();
  return x.size() == y.size() && (x.empty() || std::equal(x.begin() + 1, x.end(), y.begin() + 1));
}

bool shapes_agree(OpKind kind, const Shape& a, const Shape& b) {
  return has_own_rows(kind) ? agree_beyond_rows(a, b) : a == b;
}

bool tensors_agree(const Request& a, const Request& b) {
  if (says_nothing_of_tensors(a) || says_nothing_of_tensors(b)) return true;
  if (a.tensors.size() != b.tensors.size()) return false;
  for (std::size_t i = 0; i < a.tensors.size(); ++i)
    if (a.tensors[i].dtype != b.tensors[i].dtype ||
        !shapes_agree(a.kind, a.tensors[i].shape, b.tensors[i].shape))
      return false;
  return true;
}

std::string text_of(const Request& request) {
  std::string text = fmt::format("{}", kolo::name(request.reduction.op));
  if (request.reduction.is_scaled())
    text += fmt::format(" with scales {} and {}", request.reduction.prescale, request.reduction.postscale);
  if (request.average_over_all) text += " over all ranks";
  return text;
}

struct Sides {
  const Request& a;
  int rank_a;
  const Request& b;
  int rank_b;

  template <typename A, typename B>
  std::string differ(const char* what, const std::string& name, const char* verb, const A& x,
                     const B& y) const {
    return fmt::format("Mismatched {} for {}: rank {} {}{}, rank {} {}{}", what, name, rank_a, verb, x,
                       rank_b, verb, y);
  }
};

std::string tensors_disagreement(const Sides& s) {
  if (says_nothing_of_tensors(s.a) || says_nothing_of_tensors(s.b)) return "";
  const std::size_t count = s.a.tensors.size();
  if (count != s.b.tensors.size())
    return s.differ("groups", s.a.name, "has ", fmt::format("{} members", count),
                    fmt::format("{} members", s.b.tensors.size()));
  for (std::size_t i = 0; i < count; ++i) {
    const auto &x = s.a.tensors[i], &y = s.b.tensors[i];
    const std::string name = is_group(s.a.kind) ? fmt::format("{} (member {})", s.a.name, i) : s.a.name;
    if (x.dtype != y.dtype)
      return s.differ("data types", name, "has ", numpy_name(x.dtype), numpy_name(y.dtype));
    if (shapes_agree(s.a.kind, x.shape, y.shape)) continue;
    std::string text = s.differ("shapes", name, "has ", x.shape, y.shape);
    if (has_own_rows(s.a.kind)) text.insert(text.find(": rank"), " beyond dimension 0");
    return text;
  }
  return "";
}

}  // namespace

const char* name(OpKind kind) { return kOpNames[static_cast<std::size_t>(kind)]; }

bool has_own_rows(OpKind kind) {
  return kind == OpKind::allgather || kind == OpKind::grouped_allgather || kind == OpKind::alltoall ||
         kind == OpKind::gather || kind == OpKind::broadcast_object || kind == OpKind::allgather_object;
}

bool is_reduction(OpKind kind) { return kind <= OpKind::grouped_reduce_scatter; }

bool is_legal_while_joined(OpKind kind) {
  return kind == OpKind::allreduce || kind == OpKind::grouped_allreduce || kind == OpKind::allgather ||
         kind == OpKind::grouped_allgather || kind == OpKind::allgather_object || kind == OpKind::barrier;
}

std::int64_t Request::bytes() const {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.bytes();
  return sum;
}

bool Request::has_rows(const std::vector<std::int64_t>& agreed, int rank) const {
  const std::size_t first = static_cast<std::size_t>(rank) * tensors.size();
  for (std::size_t t = 0; t < tensors.size(); ++t)
    if (agreed.at(first + t) != rows(t)) return false;
  return true;
}

bool agree(const Request& a, const Request& b) {
  return a.kind == b.kind && tensors_agree(a, b) && a.root == b.root && a.device == b.device &&
         a.payload == b.payload &&
         (!is_reduction(a.kind) || (a.reduction == b.reduction && a.average_over_all == b.average_over_all));
}

std::string disagreement(const Request& a, int rank_of_a, const Request& b, int rank_of_b) {
  const Sides s{a, rank_of_a, b, rank_of_b};
  if (a.kind != b.kind) return s.differ("operations", a.name, "", name(a.kind), name(b.kind));
  if (auto text = tensors_disagreement(s); !text.empty()) return text;
  if (is_reduction(a.kind) && (a.reduction != b.reduction || a.average_over_all != b.average_over_all))
    return s.differ("reduction", a.name, "has ", text_of(a), text_of(b));
  if (a.root != b.root) return s.differ("root ranks", a.name, "says ", a.root, b.root);
  if (a.device != b.device) return s.differ("devices", a.name, "has ", a.device, b.device);
  if (a.payload != b.payload) return s.differ("process sets", a.name, "has ", a.payload, b.payload);
  return "";
}

void write(ByteWriter& to, const Request& request) {
  to.text(request.name);
  to.number(static_cast<int>(request.kind));
  to.number(static_cast<std::int64_t>(request.tensors.size()));
  for (const auto& tensor : request.tensors) {
    to.number(static_cast<int>(tensor.dtype));
    to.number(tensor.shape.rank());
    for (const auto dim : tensor.shape.dims()) to.number(dim);
  }
  if (is_reduction(request.kind)) {
    to.number(static_cast<int>(request.reduction.op));
    to.real(request.reduction.prescale);
    to.real(request.reduction.postscale);
  }
  to.number((request.average_over_all ? 1 : 0) + (request.named ? 2 : 0));
  to.number(request.root);
  to.text(request.device);
  to.text(request.payload);
}

Request read_request(ByteReader& from) {
  Request request;
  request.name = from.text();
  request.kind = static_cast<OpKind>(from.number());
  request.tensors.resize(static_cast<std::size_t>(from.number()));
  for (auto& tensor : request.tensors) {
    tensor.dtype = static_cast<DType>(from.number());
    std::vector<std::int64_t> dims(static_cast<std::size_t>(from.number()));
    for (auto& dim : dims) dim = from.number();
    tensor.shape = Shape(std::move(dims));
  }
  if (is_reduction(request.kind)) {
    request.reduction.op = static_cast<ReduceOp>(from.number());
    request.reduction.prescale = from.real();
    request.reduction.postscale = from.real();
  }
  const auto flags = from.number();
  request.average_over_all = (flags & 1) != 0;
  request.named = (flags & 2) != 0;
  request.root = from.integer();
  request.device = from.text();
  request.payload = from.text();
  return request;
}

namespace {

// More different opinions than an error tells of are not carried along.
constexpr std::size_t kMostVariants = 8;

}  // namespace

Tally Tally::of(int rank, RequestPtr request) {
  Tally tally;
  tally.name = request->name;
  tally.contributors = 1;
  if (has_own_rows(request->kind))
    for (std::size_t t = 0; t < request->tensors.size(); ++t) tally.rows.emplace_back(rank, request->rows(t));
  tally.variants.push_back({rank, std::move(request)});
  return tally;
}

void Tally::merge(Tally other) {
  contributors += other.contributors;
  if (joined_rank < 0) joined_rank = other.joined_rank;
  rows.insert(rows.end(), other.rows.begin(), other.rows.end());
  for (auto& variant : other.variants) {
    const auto same = std::find_if(variants.begin(), variants.end(), [&](const Variant& known) {
      return agree(*known.request, *variant.request);
    });
    if (same == variants.end()) {
      variants.push_back(std::move(variant));
      continue;
    }
    same->rank = std::min(same->rank, variant.rank);
    if (same->request->tensors.empty()) same->request = std::move(variant.request);  // a scatter's root
  }
  std::sort(variants.begin(), variants.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  if (variants.size() > kMostVariants) variants.resize(kMostVariants);
}

std::string Tally::disagreement(const std::vector<int>& members) const {
  for (std::size_t i = 1; i < variants.size(); ++i) {
    std::string text = detail::disagreement(*variants[0].request, members[variants[0].rank],
                                            *variants[i].request, members[variants[i].rank]);
    if (!text.empty()) return text;
  }
  return "";
}

void Tally::write(ByteWriter& to) const {
  to.text(name);
  to.number(static_cast<std::int64_t>(variants.size()));
  for (const auto& variant : variants) {
    to.number(variant.rank);
    detail::write(to, *variant.request);
  }
  to.number(contributors);
  to.number(joined_rank);
  to.number(static_cast<std::int64_t>(rows.size()));
  for (const auto& [rank, count] : rows) {
    to.number(rank);
    to.number(count);
  }
}

Tally Tally::read(ByteReader& from) {
  Tally tally;
  tally.name = from.text();
  tally.variants.resize(static_cast<std::size_t>(from.number()));
  for (auto& variant : tally.variants) {
    variant.rank = from.integer();
    variant.request = std::make_shared<const Request>(read_request(from));
  }
  tally.contributors = from.integer();
  tally.joined_rank = from.integer();
  tally.rows.resize(static_cast<std::size_t>(from.number()));
  for (auto& [rank, count] : tally.rows) {
    rank = from.integer();
    count = from.number();
  }
  return tally;
}

namespace {

void hurry(EngineCompletion& completion) {
  MutexLock lock(completion.mutex);
  if (completion.hurry) completion.hurry();
}

}  // namespace

bool EngineOperation::wait_until(std::chrono::steady_clock::time_point deadline) {
  if (done) return true;
  if (!sent) hurry(*completion);
  MutexLock lock(completion->mutex);
  while (!done)
    if (!completion->changed.wait_until(completion->mutex, deadline) &&
        std::chrono::steady_clock::now() >= deadline)
      return done;
  return true;
}

void EngineOperation::wait() {
  if (done) return;
  if (!sent) hurry(*completion);
  MutexLock lock(completion->mutex);
  while (!done) completion->changed.wait(completion->mutex);
}

void EngineOperation::then(std::function<void()> work) {
  {
    MutexLock lock(completion->mutex);
    if (!done) {
      afterwards.push_back(std::move(work));
      return;
    }
  }
  work();
}

void EngineOperation::get() {
  wait();
  if (error) std::rethrow_exception(error);
}

OperationPtr make_operation() {
  return std::allocate_shared<EngineOperation>(boost::fast_pool_allocator<EngineOperation>());
}

void finish(std::span<EngineOperation* const> operations, const std::exception_ptr& error) {
  if (operations.empty()) return;
  EngineCompletion& completion = *operations.front()->completion;
  std::vector<std::function<void()>> afterwards;
  {
    MutexLock lock(completion.mutex);
    for (EngineOperation* const operation : operations) {
      operation->error = error;
      if (!operation->afterwards.empty())
        std::move(operation->afterwards.begin(), operation->afterwards.end(), std::back_inserter(afterwards));
      operation->afterwards.clear();
      operation->done.store(true, std::memory_order_release);
    }
    completion.changed.notify_all();
  }
  for (const auto& work : afterwards) work();
}

}  // namespace kolo::detail
