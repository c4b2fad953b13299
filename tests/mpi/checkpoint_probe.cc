// A program that checkpoint_ranks_test starts on changing numbers of ranks: trains to a step, with shards and
// residuals, from whatever its folder holds. Arguments: the folder, the last step.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <kolo/collectives/job/init.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/training/monitored_session.h>
#include <kolo/core/training/rank_state.h>
#include <kolo/optimizer/compression/compression.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace {

constexpr std::int64_t kElements = 4;  // of "w/Adam"; element i grows by i + 1 in each step

std::string state_of(kolo::Session& session, const kolo::Variable& slot, std::int64_t first,
                     std::int64_t step) {
  const kolo::Tensor value = session.run(slot.read());
  for (std::int64_t i = 0; i < value.elements(); ++i)
    if (value.data<float>()[i] != static_cast<float>((first + i + 1) * step)) return "wrong";
  return "right";
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kolo;
  init(&argc, &argv);
  const std::string folder = argv[1];
  const std::int64_t last_step = std::atoi(argv[2]);

  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {20}));
  // As many elements for each rank as for the first, as far as they go: with 3 ranks 2, 2 and none.
  const std::int64_t each = (kElements + size() - 1) / size();
  const std::int64_t first = std::min(kElements, rank() * each), n = std::min(each, kElements - first);
  const Variable slot(s.named("w/shard/Adam"), zeros(s, DType::f32, {n}), {.trainable = false});
  set_rank_state(graph, slot,
                 {.kind = RankState::Kind::part, .whole = {"w/Adam", {2, 2}}, .range = {.first = first}});
  const Tensor added(DType::f32, {n});
  for (std::int64_t i = 0; i < n; ++i) added.data<float>()[i] = static_cast<float>(first + i + 1);
  DistributedOptimizer optimizer(std::make_unique<GradientDescentOptimizer>(1.0f),
                                 {.compression = topk_compression(0.1)});
  const Operation train = group(s, {optimizer.minimize(s, mul(s, w, fill(s, DType::f32, {20}, rank() + 1))),
                                    assign_add(s, slot, constant(s, added))});

  MonitoredTrainingSession session(graph, {.checkpoint_dir = rank() == 0 ? folder : "",
                                           .save_checkpoint_steps = 100,
                                           .hooks = {std::make_shared<StopAtStepHook>(last_step)}});
  std::string residual = "none";
  if (graph.find_node("w/topk_error") != nullptr) {
    const Tensor error = session.session().run("w/topk_error:0");
    residual =
        std::any_of(error.span<float>().begin(), error.span<float>().end(), [](float x) { return x != 0; })
            ? "kept"
            : "fresh";
  }
  const std::int64_t step = session.global_step();
  const std::string own = fmt::format("rank {} of {}: step {}, shard {}, residual {}", rank(), size(), step,
                                      state_of(session.session(), slot, first, step), residual);
  while (!session.should_stop()) session.run(train);
  session.close();
  for (const std::string& line : world_group().allgather(own))
    if (rank() == 0) std::fputs((line + "\n").c_str(), stdout);
}
