// Ratings of items by users from a vector for each: Koren, Bell, Volinsky, "Matrix factorization techniques
// for recommender systems", IEEE Computer 42 (2009), equation 5. A step touches the rows of its users and
// items alone, on all ranks: their gradients travel as rows.
#pragma once

#include <cstdint>

#include <kolo/core/graph/scope.h>

namespace kolo::models {

/// Sizes of matrix_factorization.
struct MatrixFactorizationOptions {
  std::int64_t users = 0, items = 0;  // how many there are, ≥ 1
  std::int64_t width = 32;            // of a vector, ≥ 1
  double mean = 0;                    // of the ratings, where that of all biases starts
};

/// users and items: i32 or i64 [N], below options.users and options.items → the rating expected of each pair,
/// f32 [N]: mean + bias of the user + bias of the item + product of their vectors. Variables users/w
/// [users, width + 1] and items/w, a vector with its bias behind it, and mean: (users + items) · (width + 1)
/// + 1 parameters. Vectors start as normal numbers of standard deviation 0.1, biases at 0. Train it with
/// mean_squared_error. Throws InvalidArgumentError for options out of range and other inputs.
Output matrix_factorization(Scope& s, Output users, Output items, const MatrixFactorizationOptions& options);

}  // namespace kolo::models
