// The observers of this process's engine.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <kolo/collectives/engine/observer.h>
#include <kolo/collectives/engine/operation.h>

namespace kolo::detail {

/// nullptr where nobody observes. Any thread.
std::shared_ptr<const std::vector<std::shared_ptr<EngineObserver>>> observers();

/// Calls `tell(observer, event)` of each observer.
template <typename Tell>
void observe(int process_set, const Operation& operation, const Tell& tell) {
  const auto all = observers();
  if (!all) return;
  const Request& request = *operation.request;
  EngineEvent event{.name = request.name,
                    .kind = name(request.kind),
                    .bytes = request.bytes(),
                    .process_set = process_set,
                    .sequence = operation.sequence};
  if (!request.tensors.empty()) {
    event.dtype = request.tensors[0].dtype;
    event.shape = request.tensors[0].shape;
  }
  for (const auto& observer : *all) tell(*observer, event);
}

/// `collective`, which carries out these operations, with its start and its phases told to the observers; the
/// collective itself where nobody observes. `collective` keeps them alive.
std::shared_ptr<Collective> observed(std::shared_ptr<Collective> collective, int process_set,
                                     const std::vector<Operation*>& operations);

}  // namespace kolo::detail
