#include <kolo/core/runtime/group.h>

#include <algorithm>
#include <utility>

#include <kolo/core/base/text.h>

namespace kolo {
namespace {

class GroupOfOne final : public Group {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void broadcast(std::span<const Tensor>, int) override {}
  void gather(const Tensor& own, std::span<const Tensor> parts, int) override {
    parts.front().copy_from(own);
  }
  void scatter(std::span<const Tensor> parts, const Tensor& own, int) override {
    own.copy_from(parts.front());
  }
  std::string broadcast(const std::string& text, int) override { return text; }
  std::vector<std::string> allgather(const std::string& text) override { return {text}; }
};

// Never destroyed: the exit handler of init() uses it after the destructors of later statics have run.
std::unique_ptr<Group>& world() {
  static auto* const group = new std::unique_ptr<Group>(std::make_unique<GroupOfOne>());
  return *group;
}

}  // namespace

void Group::gather(const Tensor&, std::span<const Tensor>, int) {
  throw UnimplementedError("gather: only the group of all ranks does this");
}
void Group::scatter(std::span<const Tensor>, const Tensor&, int) {
  throw UnimplementedError("scatter: only the group of all ranks does this");
}

bool Group::is_same_everywhere(const std::string& text) {
  const auto all = allgather(text);
  return std::all_of(all.begin(), all.end(), [&](const std::string& other) { return other == all[0]; });
}

Group& world_group() { return *world(); }

Group& group_of_one() {
  static GroupOfOne group;
  return group;
}

void set_world_group(std::unique_ptr<Group> group) {
  world() = group ? std::move(group) : std::make_unique<GroupOfOne>();
}

void throw_if_any_failed(Group& group, Code code, const std::string& error) {
  const std::string own = error.empty() ? "" : std::to_string(static_cast<int>(code)) + " " + error;
  if (group.is_same_everywhere(own) && own.empty()) return;
  const auto reports = group.allgather(own);
  for (int rank = 0; rank < group.size(); ++rank) {
    const std::string& report = reports[rank];
    if (report.empty()) continue;
    const auto space = report.find(' ');
    const auto failed_with =
        static_cast<Code>(parse_int64(report.substr(0, space)).value_or(static_cast<int>(Code::unknown)));
    const std::string text = report.substr(space + 1);
    throw_error(failed_with, rank == group.rank() ? text : fmt::format("rank {}: {}", rank, text));
  }
}

}  // namespace kolo
