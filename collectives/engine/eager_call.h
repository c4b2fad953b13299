// The way of an eager call into the engine.
#pragma once

#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <utility>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/engine.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {

/// Names the call; `fill(operation, request, set)` checks it and says what it wants. An error of it is told
/// to the other ranks, which would wait for this call, and thrown.
template <typename Fill>
OperationPtr start(OpKind kind, const EagerOptions& options, const Fill& fill) {
  const auto set = current_engine()->set(options.process_set.id());
  auto operation = make_operation();
  auto request = std::make_shared<Request>();
  request->kind = kind;
  request->named = !options.name.empty();
  request->name = request->named ? options.name : set->next_name(kind);
  request->average_over_all = options.join_average == JoinAverage::all;
  operation->allocator = options.allocator;
  try {
    fill(*operation, *request, *set);
  } catch (const Error& error) {
    set->refuse(request->name, error.what());
    throw;
  }
  operation->request = std::move(request);
  set->submit(operation);
  return operation;
}

}  // namespace kolo::detail
