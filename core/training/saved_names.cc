#include <kolo/core/training/saved_names.h>

#include <kolo/core/base/error.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/rank_state_internal.h>
#include <kolo/core/training/variable_slices.h>

namespace kolo::detail {

using Kind = RankState::Kind;

void SavedNames::set(const Variable& variable, const std::string& name) {
  if (name.empty())
    throw InvalidArgumentError("variable \"{}\" is to be saved under an empty name", variable.name());
  const RankState state = rank_state(variable);
  const std::string own = of(variable, state);
  if (name != own && (state.kind == Kind::part || state.kind == Kind::own || variable_slice(variable)))
    throw InvalidArgumentError(
        "variable \"{}\" is to be saved as \"{}\"; as {}, it can only be saved as \"{}\"", variable.name(),
        name, state.kind == Kind::own ? "each rank's own" : "a part of a whole", own);
  if (!names_.emplace(variable.ref().node, name).second)
    throw InvalidArgumentError("The same saveable will be restored with two names: {}", variable.name());
}

std::string SavedNames::of(const Variable& variable, const RankState& state) const {
  if (const auto given = names_.find(variable.ref().node); given != names_.end()) return given->second;
  return state.kind == Kind::part ? state.whole.name : in_file(variable).whole;
}

std::optional<std::string> SavedNames::find(const CheckpointIndex& index, const Variable& variable,
                                            const RankState& state) const {
  const std::string name = of(variable, state);
  if (name != variable.name() && state.kind == Kind::shared)
    return index.tensors.count(name) > 0 ? std::optional(name) : std::nullopt;
  return name_in_checkpoint(index, variable, state, world_group().rank(), world_group().size());
}

Shape saved_shape(const Variable& variable, const RankState& state) {
  return state.kind == Kind::part ? state.whole.shape : in_file(variable).shape;
}

}  // namespace kolo::detail
