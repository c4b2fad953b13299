#include <kolo/core/training/initial_weights.h>

#include <cstddef>
#include <cstring>
#include <set>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

Tensor transposed(const Tensor& matrix, const std::string& name, const std::string& of) {
  if (matrix.shape().rank() != 2 || matrix.dtype() == DType::string)
    throw InvalidArgumentError(
        "\"{}\" asks for the transpose of \"{}\", which is {} {}; only a matrix has one", name, of,
        matrix.dtype(), matrix.shape());
  const Tensor result(matrix.dtype(), {matrix.shape().dim(1), matrix.shape().dim(0)});
  detail::transpose_matrix(matrix, result);
  return result;
}

}  // namespace

namespace detail {

WeightSource weight_source(const std::string& name, bool is_held) {
  if (is_held || !name.ends_with(".T")) return {name};
  return {name.substr(0, name.size() - 2), true};
}

void transpose_matrix(const Tensor& from, const Tensor& into) {
  const std::int64_t rows = from.shape().dim(0), cols = from.shape().dim(1);
  const auto size = static_cast<std::int64_t>(size_of(from.dtype()));
  const std::byte* const source = from.raw();
  std::byte* const target = into.raw();
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      std::memcpy(target + (c * rows + r) * size, source + (r * cols + c) * size,
                  static_cast<std::size_t>(size));
}

}  // namespace detail

std::map<std::string, Tensor> to_weight_names(const std::map<std::string, Tensor>& variables,
                                              const WeightNames& names) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [variable, value] : variables) {
    const auto given = names.find(variable);
    const std::string& name = given == names.end() ? variable : given->second;
    if (name.empty()) continue;
    // A name that was not asked for is taken as it is.
    const auto [tensor, is_transposed] = detail::weight_source(name, given == names.end());
    if (!tensors.emplace(tensor, is_transposed ? transposed(value, name, variable) : value).second)
      throw InvalidArgumentError("two variables, one of them \"{}\", are to become the tensor \"{}\"",
                                 variable, tensor);
  }
  return tensors;
}

std::map<std::string, Tensor> from_weight_names(const std::map<std::string, Tensor>& tensors,
                                                const WeightNames& names) {
  std::map<std::string, Tensor> variables;
  std::set<std::string> taken;
  for (const auto& [variable, name] : names) {
    if (name.empty()) continue;
    const auto [tensor, is_transposed] = detail::weight_source(name, tensors.count(name) > 0);
    const auto found = tensors.find(tensor);
    if (found == tensors.end())
      throw NotFoundError("there is no tensor \"{}\", which the variable \"{}\" is to be made from", tensor,
                          variable);
    taken.insert(tensor);
    variables[variable] = is_transposed ? transposed(found->second, name, tensor) : found->second;
  }
  for (const auto& [name, value] : tensors)
    if (taken.count(name) == 0 && !variables.emplace(name, value).second)
      throw InvalidArgumentError("two tensors, one of them \"{}\", are to become the variable of that name",
                                 name);
  return variables;
}

}  // namespace kolo
