// The way of a call into the engine.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include <kolo/collectives/engine/engine.h>
#include <kolo/core/base/error.h>

namespace kolo::detail {

/// What a call says besides its kind and what it brings.
struct CallOptions {
  std::string_view name = {};  // "": numbered, see TensorQueue::next_name
  int process_set = 0;
  bool average_over_all = false;            // also over the ranks that have joined
  Allocator* allocator = &cpu_allocator();  // of results
};

/// Names the call; `fill(operation, request, set)` checks it and says what it wants. An error of it is told
/// to the other ranks, which would wait for this call, and thrown. Any thread but kolo's own.
template <typename Fill>
OperationPtr start(OpKind kind, const CallOptions& options, const Fill& fill) {
  const auto engine = current_engine();  // kept until the call is submitted: the set refers to its thread
  const auto set = engine->set(options.process_set);
  auto operation = make_operation();
  auto request = std::make_shared<Request>();
  request->kind = kind;
  request->named = !options.name.empty();
  request->name = request->named ? std::string(options.name) : set->next_name(kind);
  request->average_over_all = options.average_over_all;
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
