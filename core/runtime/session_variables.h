// The values of a session's variables, wherever they lie: for savers, and for hooks between runs.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include <kolo/core/ops/variables.h>
#include <kolo/core/tensor/tensor.h>

namespace kolo {

class Session;

namespace detail {

/// In the host's memory: of a local session that of the variable where it lies there, else a copy. Empty
/// where the variable has no value.
Tensor value_of(Session& session, const Variable& variable);
/// on_value: for each in order. Of a remote session in one pass, and one value at a time is in memory.
void read_values(Session& session, const std::vector<Variable>& variables,
                 const std::function<void(std::size_t variable, const Tensor& value)>& on_value);
/// fill(variable, into): for each in order; writes the value into memory of its type and shape, of a local
/// session the variable's own.
void write_values(Session& session, const std::vector<Variable>& variables,
                  const std::function<void(std::size_t variable, const Tensor& into)>& fill);
std::vector<bool> are_initialized(Session& session, const std::vector<Variable>& variables);
inline bool is_initialized(Session& session, const Variable& variable) {
  return are_initialized(session, {variable}).front();
}

}  // namespace detail
}  // namespace kolo
