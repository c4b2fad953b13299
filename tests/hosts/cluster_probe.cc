// A client of a cluster's servers that tells when it learnt of a fault, and as what: cluster_probe KIND
// TARGET …
//
// Its cluster has two parameter servers and a worker, which TARGET is. Times are those of the monotonic
// clock, which all processes of the machine share. Lines: "ready", "fault TIME", "told TIME CODE TEXT",
// "value TIME NUMBER", "step TIME NUMBER".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <kolo/cluster.h>
#include <kolo/kolo.h>

using namespace kolo;

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTimeout{300};
constexpr std::chrono::seconds kCounting{3};
constexpr std::chrono::milliseconds kPace{10};  // of a training, so that a fault comes before its end
constexpr int kOutside = 9;                     // of a table of 4 rows

double seconds(Clock::time_point time = Clock::now()) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void wait_for_driver() {
  std::string line;
  std::getline(std::cin, line);
}

/// Runs `step` and says what came of it.
template <typename Step>
void tell(const Step& step) {
  try {
    const float value = step();
    say(fmt::format("value {:.6f} {}", seconds(), value));
  } catch (const Error& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    say(fmt::format("told {:.6f} {} {}", seconds(), name(error.code()), text));
  }
}

struct Nodes {
  explicit Nodes(Graph& graph)
      : s(graph),
        ps(s.device("/job:ps/task:0")),
        other(s.device("/job:ps/task:1")),
        sum(add(ps, constant(ps, 1.0f), constant(ps, 2.0f))),
        queue(ps.named("empty"), {DType::f32}),
        take(dequeue(ps.named("take"), queue)[0]),
        rows(other.named("rows"), {DType::i32}),
        bad(gather(other.named("bad"), zeros(other, DType::f32, {4}), dequeue(other, rows)[0])),
        put(enqueue(other, rows, {constant(other, Tensor::scalar<std::int32_t>(kOutside))})),
        count(ps.named("count"), constant(ps, 0.0f)),
        more(assign_add(ps, count, constant(ps, 1.0f))) {}

  Scope s, ps, other;
  Output sum;
  FIFOQueue queue;
  Output take;  // never has a value
  FIFOQueue rows;
  Output bad;
  Operation put;
  Variable count;
  Output more;
};

float number(Session& session, Output fetch, const RunOptions& options = {}) {
  return session.run(std::vector<Fetch>{fetch}, {}, options)[0].value<float>();
}

void run_step(const std::string& kind, const std::string& target) {
  Graph graph;
  const Nodes nodes(graph);
  Session session(graph, target);
  session.run(nodes.count.initializer());
  number(session, nodes.sum);
  say("ready");
  if (kind == "during") return tell([&] { return number(session, nodes.take); });
  if (kind == "between") {
    wait_for_driver();
    return tell([&] { return number(session, nodes.sum); });
  }
  if (kind == "timeout") {
    say(fmt::format("fault {:.6f}", seconds(Clock::now() + kTimeout)));
    return tell([&] { return number(session, nodes.take, {.timeout_in_ms = kTimeout.count()}); });
  }
  if (kind == "count") {
    const auto end = Clock::now() + kCounting;
    float counted = 0;
    tell([&] {
      while (Clock::now() < end)
        if (number(session, nodes.more) != ++counted)
          throw DataLossError("{} steps were counted otherwise", counted);
      return counted;
    });
    return;
  }
  const std::jthread run([&] {
    tell([&] {
      if (kind == "kernel") session.run(std::vector<Fetch>{nodes.bad, nodes.take});
      else number(session, nodes.take);
      return 0.0f;
    });
  });
  wait_for_driver();
  say(fmt::format("fault {:.6f}", seconds()));
  if (kind == "kernel") session.run(nodes.put);
  else session.close();
}

void train(const std::string& target, bool is_chief, const std::string& folder, std::int64_t last_step) {
  Graph graph;
  Scope s(graph), ps = s.device("/job:ps/task:0");
  const Variable w(ps.named("w"), constant(ps, 1.0f));
  const Variable step = get_or_create_global_step(ps);
  const Operation train_op =
      GradientDescentOptimizer(0.001f).minimize(ps, mul(ps, w.read(), w.read()), {.global_step = step});
  MonitoredTrainingSessionOptions options;
  options.master = target;
  options.is_chief = is_chief;
  options.recovery_wait_secs = 1;
  options.checkpoint_dir = is_chief ? folder : "";
  options.save_checkpoint_steps = 20;
  options.hooks = {std::make_shared<StopAtStepHook>(last_step)};
  MonitoredTrainingSession session(graph, options);
  while (!session.should_stop()) {
    session.run(train_op);
    say(fmt::format("step {:.6f} {}", seconds(), session.global_step()));
    std::this_thread::sleep_for(kPace);
  }
  session.close();
}

// A checkpoint of which each task writes its own variables.
void save_sharded(const std::string& target, const std::string& prefix) {
  Graph graph;
  const Scope s(graph);
  const Variable a(s.device("/job:ps/task:0").named("a"), constant(s, 1.0f)),
      b(s.device("/job:ps/task:1").named("b"), constant(s, 2.0f));
  Session session(graph, target);
  session.run(std::vector<Fetch>{a.initializer(), b.initializer()});
  tell([&] {
    Saver saver(graph, {.sharded = true});
    saver.save(session, prefix);
    session.set_variables({{"a", Tensor::scalar(0.0f)}, {"b", Tensor::scalar(0.0f)}});
    saver.restore(session, prefix);
    return number(session, a.read()) + number(session, b.read());
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (kind == "train" && argc == 6) {
    train(argv[2], argv[3] == std::string("chief"), argv[4], std::stoll(argv[5]));
  } else if (kind == "sharded" && argc == 4) {
    save_sharded(argv[2], argv[3]);
  } else if (argc == 3) {
    run_step(kind, argv[2]);
  } else {
    std::fprintf(
        stderr,
        "cluster_probe: KIND TARGET, train TARGET chief|worker FOLDER LAST_STEP, or sharded TARGET PREFIX\n");
    return 2;
  }
  return 0;
}
