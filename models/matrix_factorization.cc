#include <kolo/models/zoo.h>

#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/indexing.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/random.h>
#include <kolo/core/ops/reductions.h>
#include <kolo/core/ops/shapes.h>
#include <kolo/core/ops/variables.h>

namespace kolo::models {
namespace {

// A vector and a bias for each of `count`, in one row, so that one lookup brings both.
Variable table(const Scope& s, const std::string& name, std::int64_t count, std::int64_t width) {
  const Scope start = s.name_scope(name + "_start");
  const Output vectors = random_normal(start.named("vectors"), DType::f32, {count, width}, 0, 0.1);
  return Variable(s.named(name + "/w"), concat(start, {vectors, zeros(start, DType::f32, {count, 1})}, 1));
}

void check(const Output& ids, const char* of) {
  if ((ids.dtype() != DType::i32 && ids.dtype() != DType::i64) || !ids.shape().has_rank() ||
      ids.shape().rank() != 1)
    throw InvalidArgumentError("matrix_factorization: its {} {} are {} {}; they must be i32 or i64 [N]", of,
                               ids.name(), ids.dtype(), ids.shape());
}

}  // namespace

Output matrix_factorization(Scope& s, Output users, Output items, const MatrixFactorizationOptions& options) {
  check(users, "users");
  check(items, "items");
  const std::int64_t width = options.width;
  if (options.users < 1 || options.items < 1 || width < 1)
    throw InvalidArgumentError("matrix_factorization: {} users, {} items, width {}; they must be at least 1",
                               options.users, options.items, width);
  const Output u = embedding_lookup(s, table(s, "users", options.users, width), users),
               i = embedding_lookup(s, table(s, "items", options.items, width), items);
  const Outputs of_user = split_v(s, u, {width, 1}, 1), of_item = split_v(s, i, {width, 1}, 1);
  const Output product = reduce_sum(s, mul(s, of_user[0], of_item[0]), {.axes = {1}});
  const Output bias = squeeze(s, add(s, of_user[1], of_item[1]), {1});
  const Variable mean(s.named("mean"),
                      constant(s.named("mean/initial_value"), static_cast<float>(options.mean)));
  return add(s, add(s, product, bias), mean);
}

}  // namespace kolo::models
