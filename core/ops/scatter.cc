#include <kolo/core/ops/scatter.h>

#include <utility>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

const std::vector<DType> kArithmetic = {DType::f32, DType::f64, DType::i32, DType::i64};
const std::vector<DType> kNumeric = {DType::f32, DType::f64, DType::i32, DType::i64, DType::boolean,
                                     DType::u8,  DType::i8,  DType::f16, DType::bf16};

void scatter_shape(ShapeContext& c) {
  const Shape &ref = c.input(0), &indices = c.input(1), &updates = c.input(2);
  if (ref.rank() == 0) throw InvalidArgumentError("scatter: the variable is a scalar; it has no rows");
  if (indices.has_rank()) {
    std::vector<std::int64_t> dims = indices.dims();
    dims.insert(dims.end(), ref.dims().begin() + 1, ref.dims().end());
    const Shape wanted(std::move(dims));
    if (!updates.is_compatible_with(wanted))
      throw InvalidArgumentError(
          "scatter: the updates are {}; for a variable of {} and indices of {} they must be {}", updates, ref,
          indices, wanted);
  }
  c.set_output(0, ref);
}

OpSchema scatter(const char* name, const std::vector<DType>& types) {
  return OpSchema(name)
      .input("ref", types)
      .updates()
      .input("indices", {DType::i32, DType::i64})
      .input("updates", "ref")
      .output("new_value")
      .shape(scatter_shape)
      .no_gradient();
}

const RegisterOp scatter_ops[] = {
    scatter("ScatterAdd", kArithmetic),
    scatter("ScatterSub", kArithmetic),
    scatter("ScatterUpdate", kNumeric),
};

Output add_scatter(const char* op, const Scope& s, const Variable& v, Output indices, Output updates) {
  return s.colocate_with(v.ref()).add(op, {v.ref(), indices, updates});
}

}  // namespace

Output scatter_add(const Scope& s, const Variable& v, Output indices, Output updates) {
  return add_scatter("ScatterAdd", s, v, indices, updates);
}
Output scatter_sub(const Scope& s, const Variable& v, Output indices, Output updates) {
  return add_scatter("ScatterSub", s, v, indices, updates);
}
Output scatter_update(const Scope& s, const Variable& v, Output indices, Output updates) {
  return add_scatter("ScatterUpdate", s, v, indices, updates);
}

}  // namespace kolo
