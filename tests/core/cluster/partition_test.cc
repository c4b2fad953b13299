#include <kolo/core/cluster/worker/partition.h>

#include <gmock/gmock.h>

#include <kolo/collectives/graph/group_ops.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/ops/variables.h>

#include "small_cluster.h"

namespace kolo::detail {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

class Partition : public ::testing::Test {
 protected:
  const StepPart& part(const std::vector<StepPart>& parts, const std::string& task) {
    for (const StepPart& part : parts)
      if (part.task == task) return part;
    throw NotFoundError("no part of {}", task);
  }
  static std::vector<std::string> ops_of(const StepPart& part) {
    std::vector<std::string> ops;
    for (const NodeDef& node : part.graph.nodes) ops.push_back(node.op);
    return ops;
  }

  SmallCluster cluster_{{kPs0, kPs1, kWorker0, kWorker1}};
  Graph graph_;
  Scope s_{graph_};
};

// Row 11.
TEST_F(Partition, SendsAValueOncePerTask) {
  const Output k = constant(s_.device(kPs1).named("k"), 2.5f);
  const Output m = mul(s_.device(kWorker0).named("m"), k, constant(s_.device(kWorker0), 4.0f));
  SmallSession session(cluster_, graph_, kWorker1, "s");
  const auto parts = session.cut({m, k});
  ASSERT_THAT(parts, SizeIs(3));
  EXPECT_EQ(parts[0].task, kWorker1);
  EXPECT_THAT(part(parts, kPs1).sends.at(kWorker0), SizeIs(1));
  EXPECT_THAT(part(parts, kPs1).sends.at(kWorker1), SizeIs(1));
  EXPECT_THAT(part(parts, kWorker0).sends.at(kWorker1), SizeIs(1));
  EXPECT_THAT(part(parts, kPs1).receives, IsEmpty());
  const auto values = session.run({m, k});
  EXPECT_EQ(values.at(0).value<float>(), 10.0f);
  EXPECT_EQ(values.at(1).value<float>(), 2.5f);
}

// Row 12, with fewer bytes.
TEST_F(Partition, SendsAValueOnceToATaskWithSeveralReaders) {
  SmallCluster cluster({kPs0, kWorker0}, {.virtual_gpus = {{}}});
  const Output value = constant(s_.device(kPs0 + "/device:CPU:0"), Tensor::of<float>({2}, {1, 2}));
  std::vector<Fetch> readers;
  for (int i = 0; i < 5; ++i) readers.push_back(add(s_.device(kWorker0 + "/device:CPU:0"), value, value));
  readers.push_back(add(s_.device(kWorker0 + "/device:GPU:0"), value, value));
  SmallSession session(cluster, graph_, kWorker0, "s");
  EXPECT_THAT(part(session.cut(readers), kPs0).sends.at(kWorker0), SizeIs(1));
  for (const Tensor& sum : session.run(readers)) EXPECT_THAT(sum.span<float>(), ElementsAre(2, 4));
}

TEST_F(Partition, SpellsKeysWithDevicesIncarnationAndUpdates) {
  const Output k = constant(s_.device(kPs1).named("k"), 2.5f);
  SmallSession session(cluster_, graph_, kWorker1, "s");
  const auto parts = session.cut({k});
  const std::string key = part(parts, kPs1).sends.at(kWorker1).at(0);
  const std::uint64_t incarnation = status_of(cluster_[kPs1]).devices.at(0).incarnation;
  EXPECT_EQ(key,
            fmt::format("{}/device:CPU:0;{:016x};{}/device:CPU:0;k:0@0;0:0", kPs1, incarnation, kWorker1));
  EXPECT_EQ(to_string(parse_transfer_key(key)), key);
}

TEST_F(Partition, RefusesKeysThatAreNone) {
  for (const char* text : {"", ";;;;", "a;b;c;d;e", "/job:a/replica:0/task:0/device:CPU:0;0;x;y@0;0:0"})
    EXPECT_THAT([&] { parse_transfer_key(text); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("Invalid rendezvous key")))
        << text;
}

// Row 13.
TEST_F(Partition, ShowsReadersTheUpdatesThatAreOlder) {
  const Scope ps = s_.device(kPs0), worker = s_.device(kWorker0);
  const Variable c(ps.named("c"), constant(ps, 41.0f));
  const Output r = add(worker.named("r"), c, constant(worker, 0.0f));
  const Output update = assign_add(ps.named("u"), c, constant(ps, 1.0f));
  const Output r2 = add(worker.named("r2"), c, constant(worker, 0.0f));
  const Output t = constant(worker.control_dependencies({Operation(update.node)}).named("t"), 7.0f);
  SmallSession session(cluster_, graph_, kWorker0, "s");
  session.run({c.initializer()});
  EXPECT_THAT(part(session.cut({t, r, r2}), kPs0).sends.at(kWorker0), SizeIs(3));  // c twice, and u's end
  const auto values = session.run({t, r, r2});
  EXPECT_EQ(values.at(0).value<float>(), 7.0f);
  EXPECT_EQ(values.at(1).value<float>(), 41.0f);
  EXPECT_EQ(values.at(2).value<float>(), 42.0f);
  EXPECT_EQ(session.run({c}).at(0).value<float>(), 42.0f);
}

TEST_F(Partition, SkipsWhatABranchOfAnotherTaskSkips) {
  const Output p = placeholder(s_.device(kWorker0), DType::boolean, {});
  const Output x = constant(s_.device(kWorker0), 3.0f);
  const auto y = cond(
      s_.device(kPs0), p, [&](const Scope& s) { return Outputs{mul(s.device(kPs0), x, x)}; },
      [&](const Scope& s) { return Outputs{add(s.device(kPs1), x, x)}; });
  SmallSession session(cluster_, graph_, kWorker0, "s");
  EXPECT_EQ(session.run({y[0]}, {{p, Tensor::scalar(true)}}).at(0).value<float>(), 9.0f);
  EXPECT_EQ(session.run({y[0]}, {{p, Tensor::scalar(false)}}).at(0).value<float>(), 6.0f);
}

TEST_F(Partition, TakesALoopAlongWithWhatItCaptures) {
  const Output step = constant(s_.device(kPs0), 3.0f);
  const Scope worker = s_.device(kWorker1);
  const Outputs sum = while_loop(
      worker, [](const Scope& s, const Outputs& v) { return less(s, v[0], constant(s, 10.0f)); },
      [&](const Scope& s, const Outputs& v) { return Outputs{add(s, v[0], step)}; },
      {constant(worker, 0.0f)});
  SmallSession session(cluster_, graph_, kWorker0, "s");
  EXPECT_EQ(session.run({sum[0]}).at(0).value<float>(), 12.0f);
}

TEST_F(Partition, RefusesALoopOnSeveralTasks) {
  const Scope worker = s_.device(kWorker1);
  const Outputs sum = while_loop(
      worker.named("sums"),
      [](const Scope& s, const Outputs& v) { return less(s, v[0], constant(s, 10.0f)); },
      [&](const Scope& s, const Outputs& v) { return Outputs{add(s.device(kPs0), v[0], constant(s, 1.0f))}; },
      {constant(worker, 0.0f)});
  SmallSession session(cluster_, graph_, kWorker0, "s");
  EXPECT_THAT([&] { session.cut({sum[0]}); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("spans " + kWorker1 + " and " + kPs0), HasSubstr("pin it to one task"))));
}

// Row 20.
TEST_F(Partition, RefusesOpsThatReduceOverRanks) {
  const auto reduced =
      group_allreduce(s_.named("grads"), {constant(s_, Tensor::of<float>({2}, {1, 2}))}, {"w"});
  SmallSession session(cluster_, graph_, kWorker0, "s");
  EXPECT_THAT(
      [&] { session.cut({reduced[0]}); },
      ThrowsMessage<UnimplementedError>(HasSubstr(
          "grads (GroupAllReduce) reduces over MPI ranks and cannot run in a session on grpc://here:1")));
}

TEST_F(Partition, FedValuesEnterAtTheMaster) {
  const Output x = placeholder(s_.device(kPs0), DType::f32, {2});
  const Output y = add(s_.device(kPs1), x, x);
  SmallSession session(cluster_, graph_, kWorker0, "s");
  EXPECT_THAT(session.run({y, x}, {{x, Tensor::of<float>({2}, {1, 2})}}).at(0).span<float>(),
              ElementsAre(2, 4));
}

TEST_F(Partition, CutsNoPartForATaskWithoutNodes) {
  const Output x = constant(s_.device(kPs0), 1.0f);
  SmallSession session(cluster_, graph_, kWorker0, "s");
  const auto parts = session.cut({Operation(x.node)});
  ASSERT_THAT(parts, SizeIs(1));
  EXPECT_THAT(ops_of(parts[0]), ElementsAre("Const"));
}

}  // namespace
}  // namespace kolo::detail
