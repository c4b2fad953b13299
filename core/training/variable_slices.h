// Variables that are slices of a whole (core/ops/partitioned_variables.h), as files hold them: the whole.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/ops/partitioned_variables.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo::detail {

/// What a file holds for the variable: itself, or the whole that it is a slice of.
VariableSlice in_file(const Variable& variable);

// Between a tensor of the slice's shape and one of the whole's, of one type.
void copy_out(const Tensor& whole, const VariableSlice& slice, const Tensor& part);
void copy_in(const Tensor& part, const VariableSlice& slice, const Tensor& whole);

/// Reads a whole once for those of its slices that are asked for one after the other.
class WholeReader {
 public:
  explicit WholeReader(std::function<void(const std::string& name, const Tensor& into)> read)
      : read_(std::move(read)) {}
  /// name: of the whole in the file.
  void read(const std::string& name, const VariableSlice& slice, const Tensor& part);

 private:
  std::function<void(const std::string&, const Tensor&)> read_;
  std::string name_;
  Tensor whole_;
};

/// Throws InvalidArgumentError for slices among `variables` that do not make up their whole, each element
/// once, and `At least two variables have the same name: <n>` where there are two wholes of a name.
void check_wholes(const std::vector<Variable>& variables);

}  // namespace kolo::detail
