#include <kolo/collectives/engine/request.h>

#include <fmt/format.h>

#include <array>

namespace kolo::detail {
namespace {

constexpr std::array<const char*, kOpKinds> kNames = {
    "allreduce",        "grouped_allreduce", "reduce_scatter", "grouped_reduce_scatter",
    "allgather",        "broadcast",         "alltoall",       "gather",
    "scatter",          "barrier",           "join",           "process_set",
    "broadcast_object", "allgather_object"};

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
  const bool is_group = s.a.kind == OpKind::grouped_allreduce || s.a.kind == OpKind::grouped_reduce_scatter;
  for (std::size_t i = 0; i < count; ++i) {
    const auto &x = s.a.tensors[i], &y = s.b.tensors[i];
    const std::string name = is_group ? fmt::format("{} (member {})", s.a.name, i) : s.a.name;
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

const char* name(OpKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

bool has_own_rows(OpKind kind) {
  return kind == OpKind::allgather || kind == OpKind::alltoall || kind == OpKind::gather ||
         kind == OpKind::broadcast_object || kind == OpKind::allgather_object;
}

bool is_reduction(OpKind kind) { return kind <= OpKind::grouped_reduce_scatter; }

bool is_legal_while_joined(OpKind kind) {
  return kind == OpKind::allreduce || kind == OpKind::grouped_allreduce || kind == OpKind::allgather ||
         kind == OpKind::allgather_object || kind == OpKind::barrier;
}

std::int64_t Request::bytes() const {
  std::int64_t sum = 0;
  for (const auto& tensor : tensors) sum += tensor.bytes();
  return sum;
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

}  // namespace kolo::detail
