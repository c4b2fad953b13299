#include <kolo/collectives/engine/set_group.h>

#include <fmt/format.h>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/engine/engine.h>

namespace kolo::detail {

SetGroup::SetGroup(const ProcessSet& set)
    : set_(set), ranks_(current_engine()->set(set.id())->members()), rank_(set.rank()) {}

void SetGroup::broadcast(std::span<const Tensor> tensors, int root) {
  int number = 0;
  for (const Tensor& tensor : tensors)
    broadcast_in_place(
        tensor, ranks_.at(static_cast<std::size_t>(root)),
        {.name = fmt::format("tensor {} of {} in process set {}", ++number, tensors.size(), set_.id()),
         .process_set = set_});
}

std::string SetGroup::broadcast(const std::string& text, int root) {
  return broadcast_object(std::string_view(text), ranks_.at(static_cast<std::size_t>(root)),
                          {.name = fmt::format("a text in process set {}", set_.id()), .process_set = set_});
}

std::vector<std::string> SetGroup::allgather(const std::string& text) {
  return allgather_object(
      std::string_view(text),
      {.name = fmt::format("an exchange in process set {}", set_.id()), .process_set = set_});
}

}  // namespace kolo::detail
