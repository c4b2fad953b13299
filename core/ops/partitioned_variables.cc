#include <kolo/core/ops/partitioned_variables.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shape_checks.h>
#include <kolo/core/ops/shapes.h>

namespace kolo {
namespace {

using Dims = std::vector<std::int64_t>;

std::int64_t size_along(const Shape& shape, int axis) {
  if (axis < 0 || axis >= shape.rank())
    throw InvalidArgumentError("a variable of shape {} has no dimension {} to be cut along", shape, axis);
  return shape.dim(axis);
}

// All dimensions but `axis` in one part; of an empty one there is one part, too.
Dims parts_along(const Shape& shape, int axis, std::int64_t parts) {
  Dims result(static_cast<std::size_t>(shape.rank()), 1);
  result[static_cast<std::size_t>(axis)] = std::max<std::int64_t>(1, parts);
  return result;
}

std::int64_t ceil_divided(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

void check_at_least_1(const char* what, std::int64_t value) {
  if (value < 1) throw InvalidArgumentError("{} is {}; it must be at least 1", what, value);
}

std::int64_t bytes_of(const Shape& shape, DType dtype) {
  return detail::checked_multiply(shape.elements(), static_cast<std::int64_t>(size_of(dtype)));
}

}  // namespace

Partitioner fixed_size(std::int64_t n, int axis) {
  check_at_least_1("the number of parts", n);
  return [=](const Shape& shape, DType) {
    return parts_along(shape, axis, std::min(n, size_along(shape, axis)));
  };
}

Partitioner variable_axis_size(std::int64_t max_bytes, int axis, std::optional<std::int64_t> max_shards) {
  check_at_least_1("max_bytes", max_bytes);
  if (max_shards) check_at_least_1("max_shards", *max_shards);
  return [=](const Shape& shape, DType dtype) {
    const std::int64_t size = size_along(shape, axis);
    const std::int64_t slice = std::max<std::int64_t>(1, bytes_of(shape.with_dim(axis, 1), dtype));
    const std::int64_t parts = ceil_divided(size, std::max<std::int64_t>(1, max_bytes / slice));
    return parts_along(shape, axis, std::min(parts, max_shards.value_or(parts)));
  };
}

Partitioner min_max(std::int64_t max_parts, int axis, std::int64_t min_slice) {
  check_at_least_1("the largest number of parts", max_parts);
  check_at_least_1("min_slice", min_slice);
  return [=](const Shape& shape, DType dtype) {
    const std::int64_t parts = ceil_divided(bytes_of(shape, dtype), min_slice);
    return parts_along(shape, axis, std::min({size_along(shape, axis), max_parts, parts}));
  };
}

namespace {

struct Cut {
  int axis;
  std::int64_t parts;
};

Cut cut_of(const std::string& name, const Shape& shape, DType dtype, const Partitioner& partitioner) {
  if (!partitioner) throw InvalidArgumentError("variable \"{}\": the partitioner must be callable", name);
  if (!shape.is_fully_known())
    throw InvalidArgumentError("variable \"{}\": its shape is {}; it must be fully known", name, shape);
  const Dims parts = partitioner(shape, dtype);
  const auto refuse = [&](const char* why) {
    throw InvalidArgumentError("variable \"{}\" of shape {}: the partitioner asks for [{}] parts; {}", name,
                               shape, fmt::join(parts, ","), why);
  };
  if (static_cast<int>(parts.size()) != shape.rank()) refuse("it must say a number for each dimension");
  Cut cut{.axis = 0, .parts = 1};
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t count = parts[static_cast<std::size_t>(axis)];
    if (count < 1 || count > std::max<std::int64_t>(1, shape.dim(axis)))
      refuse("no part may be empty, and there is at least one");
    if (count > 1 && cut.parts > 1) refuse("one dimension alone may be cut");
    if (count > 1) cut = {.axis = axis, .parts = count};
  }
  return cut;
}

// The size of part `k`.
std::int64_t share_of(std::int64_t size, std::int64_t parts, std::int64_t k) {
  return size / parts + (k < size % parts ? 1 : 0);
}

Shape part_of(const Shape& shape, const Cut& cut, std::int64_t k) {
  if (shape.rank() == 0) return shape;
  return shape.with_dim(cut.axis, share_of(shape.dim(cut.axis), cut.parts, k));
}

Output first_value(const Scope& s, const Shape& shape, const PartInitializer& initializer, DType dtype) {
  const Output value = initializer(s, shape);
  if (!value || value.shape() != shape || value.dtype() != dtype)
    throw InvalidArgumentError("the initializer of a part made {}; it must be {} {}",
                               value ? fmt::format("{} {}", value.dtype(), value.shape()) : "nothing", dtype,
                               shape);
  return value;
}

}  // namespace

Output PartitionedVariable::read(const Scope& s) const {
  const Outputs reads(parts_.begin(), parts_.end());
  return reads.size() == 1 ? reads.front() : concat(s, reads, axis_);
}

PartitionedVariable partitioned_variable(const Scope& s, const Shape& shape,
                                         const PartInitializer& initializer, const Partitioner& partitioner,
                                         const PartitionedVariableOptions& options) {
  const std::string wished = s.wished_name("Variable");
  const Cut cut = cut_of(wished, shape, options.dtype, partitioner);
  if (!initializer) throw InvalidArgumentError("variable \"{}\": the initializer must be callable", wished);
  const Scope inside = s.name_scope(wished);
  const Scope free = inside.name_scope("initial_value").device(nullptr).without_control_dependencies();
  Outputs values;  // all of them before any variable: one that is refused leaves none behind
  for (std::int64_t k = 0; k < cut.parts; ++k)
    values.push_back(first_value(free, part_of(shape, cut, k), initializer, options.dtype));
  PartitionedVariable made;
  made.shape_ = shape;
  made.axis_ = cut.axis;
  std::int64_t first = 0;
  for (const Output& value : values) {
    const std::string part = fmt::format("part_{}", made.parts_.size());
    const Variable variable(inside.named(part), value,
                            {.trainable = options.trainable, .local = options.local});
    made.name_ = variable.name().substr(0, variable.name().size() - part.size() - 1);
    set_variable_slice(s.graph(), variable,
                       {.whole = made.name_, .shape = shape, .axis = cut.axis, .first = first});
    made.parts_.push_back(variable);
    if (shape.rank() > 0) first += variable.shape().dim(cut.axis);
  }
  return made;
}

namespace {

constexpr char kSliceSuffix[] = "/slice_of";

bool is_slice_of(const Shape& own, const VariableSlice& slice) {
  const int axis = slice.axis, rank = slice.shape.rank();
  if (slice.whole.empty() || !slice.shape.is_fully_known() || own.rank() != rank) return false;
  if (rank == 0) return axis == 0 && slice.first == 0;
  return axis >= 0 && axis < rank && slice.shape.with_dim(axis, -1).is_compatible_with(own) &&
         slice.first >= 0 && own.dim(axis) <= slice.shape.dim(axis) - slice.first;
}

// A graph from a file may say anything, and savers copy by it.
void check_slice(ShapeContext& c) {
  const VariableSlice slice{.whole = c.attr<std::string>("whole"),
                            .shape = c.attr<Shape>("shape"),
                            .axis = c.attr<int>("axis"),
                            .first = c.attr<std::int64_t>("first")};
  if (const Shape& own = c.input(0); !own.is_fully_known() || !is_slice_of(own, slice))
    throw InvalidArgumentError("a variable of shape {} is no slice of \"{}\" of shape {} from {} on along {}",
                               own, slice.whole, slice.shape, slice.first, slice.axis);
}

// Says what the variable is a slice of; never run. A node, so that an exported graph tells it, too.
const RegisterOp slice_of_op(OpSchema("SliceOf")
                                 .input("ref")
                                 .required_attr("whole", "")
                                 .required_attr("shape", Shape())
                                 .required_attr("axis", 0)
                                 .required_attr("first", 0)
                                 .attr("variable", "")  // its name where this was noted
                                 .shape(check_slice)
                                 .stateful()
                                 .no_gradient());

}  // namespace

void set_variable_slice(Graph& graph, const Variable& variable, const VariableSlice& slice) {
  Scope(graph).add("SliceOf", {variable.ref()},
                   {{"whole", slice.whole},
                    {"shape", slice.shape},
                    {"axis", slice.axis},
                    {"first", slice.first},
                    {"variable", variable.name()}},
                   variable.name() + kSliceSuffix);
}

std::optional<VariableSlice> variable_slice(const Variable& variable) {
  const Node& storage = *variable.ref().node;
  const Node* const note = storage.graph().find_node(storage.name() + kSliceSuffix);
  if (note == nullptr || note->op() != "SliceOf" || note->input(0).node != &storage) return std::nullopt;
  const std::string noted = note->attr<std::string>("variable"), &name = storage.name();
  const std::string prefix = name.ends_with(noted) ? name.substr(0, name.size() - noted.size()) : "";
  return VariableSlice{.whole = prefix + note->attr<std::string>("whole"),  // an import may have added one
                       .shape = note->attr<Shape>("shape"),
                       .axis = note->attr<int>("axis"),
                       .first = note->attr<std::int64_t>("first")};
}

namespace {

void check_table(const std::vector<Variable>& parts) {
  if (parts.empty()) throw InvalidArgumentError("embedding_lookup: the table has no part");
  std::int64_t rows = 0;
  for (const Variable& part : parts) {
    const Variable& first = parts.front();
    if (part.shape().rank() == 0 || part.dtype() != first.dtype() ||
        part.shape().rank() != first.shape().rank() ||
        part.shape().with_dim(0, 1) != first.shape().with_dim(0, 1))
      throw InvalidArgumentError(
          "embedding_lookup: the parts must be alike but for their rows; \"{}\" is {} {}, \"{}\" {} {}",
          first.name(), first.dtype(), first.shape(), part.name(), part.dtype(), part.shape());
    rows += part.shape().dim(0);
  }
  const auto count = static_cast<std::int64_t>(parts.size());
  for (std::int64_t k = 0; k < count; ++k) {
    const Variable& part = parts[static_cast<std::size_t>(k)];
    if (const std::int64_t share = share_of(rows, count, k); part.shape().dim(0) != share)
      throw InvalidArgumentError(
          "embedding_lookup: \"{}\" has {} of {} rows in {} parts; as part {} it must have {}", part.name(),
          part.shape().dim(0), rows, count, k, share);
  }
}

struct Places {
  Output parts;
  Output rows;
};

Places places_of(const Scope& s, Output ids, std::int64_t rows, std::int64_t parts,
                 PartitionStrategy strategy) {
  const auto number = [&](std::int64_t value) {
    return fill(s, ids.dtype(), {}, static_cast<double>(value));
  };
  if (strategy == PartitionStrategy::mod)
    return {.parts = mod(s, ids, number(parts)), .rows = floordiv(s, ids, number(parts))};
  const std::int64_t share = rows / parts, larger = rows % parts;
  // Among the larger parts the first quotient is the greater one, behind them the second.
  const Output part =
      maximum(s, floordiv(s, ids, number(share + 1)),
              floordiv(s, sub(s, ids, number(larger)), number(std::max<std::int64_t>(1, share))));
  const Output begin = add(s, mul(s, part, number(share)), minimum(s, part, number(larger)));
  return {.parts = part, .rows = sub(s, ids, begin)};
}

// `rows` [n, …], one for each of the ids, under the shape of the ids.
Output shaped_as_ids(const Scope& s, Output rows, Output ids, const Shape& row, Output positions) {
  const bool is_vector = ids.shape().has_rank() && ids.shape().rank() == 1;
  if (!ids.shape().is_fully_known())
    return is_vector ? rows : gather(s, rows, reshape_like(s, positions, ids));
  Dims dims = ids.shape().dims();
  dims.insert(dims.end(), row.dims().begin() + 1, row.dims().end());
  return reshape(s, rows, Shape(std::move(dims)));
}

}  // namespace

Output embedding_lookup(const Scope& s, const std::vector<Variable>& parts, Output ids,
                        PartitionStrategy strategy) {
  check_table(parts);
  if (parts.size() == 1) return gather(s.colocate_with(parts.front().ref()), parts.front(), ids);
  std::int64_t rows = 0;
  for (const Variable& part : parts) rows += part.shape().dim(0);
  const auto count = static_cast<int>(parts.size());
  const Scope inside = s.name_scope(s.wished_name("embedding_lookup"));
  // The arithmetic of their places counts all rows.
  const bool is_large = rows > std::numeric_limits<std::int32_t>::max();
  const Output flat = reshape(inside, is_large ? cast(inside, ids, DType::i64) : ids, {-1});
  const Output positions = cumsum(inside, ones_like(inside, flat), 0, {.exclusive = true});
  const Places places = places_of(inside, flat, rows, count, strategy);
  const Outputs own_rows = dynamic_partition(inside, places.rows, places.parts, count);
  const Outputs own_positions = dynamic_partition(inside, positions, places.parts, count);
  Outputs found;
  for (int k = 0; k < count; ++k) {
    const Variable& part = parts[static_cast<std::size_t>(k)];
    found.push_back(gather(inside.colocate_with(part.ref()), part, own_rows[k]));
  }
  return shaped_as_ids(inside, dynamic_stitch(inside, own_positions, found), ids, parts.front().shape(),
                       positions);
}

Output embedding_lookup(const Scope& s, const PartitionedVariable& table, Output ids,
                        PartitionStrategy strategy) {
  if (table.axis() != 0)
    throw InvalidArgumentError("embedding_lookup: \"{}\" is cut along dimension {}; its rows must be whole",
                               table.name(), table.axis());
  return embedding_lookup(s, table.parts(), ids, strategy);
}

}  // namespace kolo
