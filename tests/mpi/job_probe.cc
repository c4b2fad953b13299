// A program that job_test starts on several ranks: each word says how the last rank ends, or how all begin.
#include <fmt/core.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <kolo/collectives/engine/eager.h>
#include <kolo/collectives/job/init.h>
#include <kolo/collectives/job/mpi_interop.h>
#include <kolo/collectives/job/runtime.h>
#include <kolo/collectives/schedule/schedule.h>
#include <kolo/core/base/process.h>
#include <kolo/core/ops/basic.h>
#include <kolo/core/ops/control_flow.h>
#include <kolo/core/ops/math.h>
#include <kolo/core/runtime/group.h>
#include <kolo/core/runtime/session.h>
#include <kolo/optimizer/distributed_optimizer.h>
#include <kolo/optimizer/rules.h>

namespace {

// What the other ranks do meanwhile: they wait for the last one.
void wait_for_everyone() { kolo::world_group().allgather("here"); }

void print_place(const std::string& what) {
  std::fputs(fmt::format("{}: rank {} of {}\n", what, kolo::rank(), kolo::size()).c_str(), stdout);
}

// Of mpirun, else of hydra.
std::string rank_by_launcher() {
  const char* const by_mpirun = std::getenv("OMPI_COMM_WORLD_RANK");
  return by_mpirun != nullptr ? by_mpirun : std::getenv("PMI_RANK");
}

int with_own_communicator() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  kolo::init(reversed);
  print_place(fmt::format("world rank {}", rank));
  kolo::shutdown();
  int finalized = 0;
  MPI_Finalized(&finalized);
  MPI_Comm_free(&reversed);
  MPI_Finalize();
  return finalized;
}

// Begun for the main thread alone; the program goes on without kolo.
int with_mpi_of_one_thread(int level) {
  MPI_Init_thread(nullptr, nullptr, level, &level);
  int rank = 0, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    kolo::init(MPI_COMM_WORLD);
  } catch (const kolo::FailedPreconditionError& error) {
    std::fputs(fmt::format("rank {}: {}\n", rank, error.what()).c_str(), stdout);
  }
  const int one = 1;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return sum == 2 ? 0 : 1;
}

int catch_and_print(int argc, char** argv) {
  try {
    kolo::init(&argc, &argv);
  } catch (const kolo::Error& error) {
    if (kolo::process().rank == 0) std::fprintf(stderr, "%s: %s\n", kolo::name(error.code()), error.what());
    kolo::shutdown();  // before the first exit code ends the job, and with it rank 0's message
    return 2;
  }
  return 0;
}

// All ranks but one enter a step; that one comes too late.
void stall(int missing, const kolo::ProcessSet& set = {}) {
  kolo::Schedule schedule(
      {.name = "stalled", .gradients = {{"g", kolo::Shape{100}, kolo::DType::f32}}, .process_set = set});
  schedule.compare();
  if (kolo::rank() == missing) std::this_thread::sleep_for(std::chrono::seconds(4));
  schedule.begin();
  std::promise<std::exception_ptr> over;
  schedule.buckets()[0].submit([&](std::exception_ptr error) { over.set_value(error); });
  const auto error = over.get_future().get();
  try {
    if (error) std::rethrow_exception(error);
    print_place("no error");
  } catch (const kolo::Error& e) {
    print_place(fmt::format("{}: {}", kolo::name(e.code()), e.what()));
  }
}

void print_error(const std::function<void()>& call) {
  try {
    call();
    print_place("no error");
  } catch (const kolo::Error& error) {
    print_place(fmt::format("{}: {}", kolo::name(error.code()), error.what()));
  }
}

// Of the ranks from 1 on the last one comes too late.
void stall_in_set() {
  std::vector<int> ranks;
  for (int rank = 1; rank < kolo::size(); ++rank) ranks.push_back(rank);
  const auto set = kolo::ProcessSet::create(ranks);
  if (set.contains_this_rank()) stall(kolo::size() - 1, set);
}

// Rank 0 alone takes the branch in which gradients are reduced and applied.
void stall_in_branch() {
  kolo::Graph graph;
  kolo::Scope s(graph);
  const kolo::Variable w(s.named("w"), kolo::constant(s, 1.0f));
  const kolo::Output loss = kolo::square(s, w);
  const kolo::Output takes = kolo::placeholder(s, kolo::DType::boolean, {});
  const kolo::Operation step = kolo::cond(
      s, takes,
      [&](const kolo::Scope& branch) {
        kolo::Scope inside = branch;
        return kolo::DistributedOptimizer(std::make_unique<kolo::GradientDescentOptimizer>(0.1))
            .minimize(inside, loss);
      },
      [](const kolo::Scope& branch) { return kolo::no_op(branch); });
  kolo::Session session(graph);
  session.run(kolo::global_variables_initializer(s));
  print_error([&] {
    session.run(step, {{takes, kolo::Tensor::scalar(kolo::rank() == 0)}});
    std::this_thread::sleep_for(std::chrono::seconds(4));
  });
}

// The last rank comes too late to an eager operation.
void eager_stall() {
  std::vector<float> values(10, 1);
  if (kolo::rank() == kolo::size() - 1) std::this_thread::sleep_for(std::chrono::seconds(4));
  print_error([&] { kolo::allreduce(std::span(values), kolo::ReduceOp::sum, {.name = "g"}); });
}

// The last rank leaves: with an operation pending, or before the others come to it.
void eager_leave(bool with_pending) {
  std::vector<float> values(10, 1);
  kolo::barrier();
  if (kolo::rank() < kolo::size() - 1) {
    print_error([&] { kolo::allreduce(std::span(values), kolo::ReduceOp::sum, {.name = "x"}); });
    print_error([&] { kolo::allreduce(std::span(values), kolo::ReduceOp::sum, {.name = "y"}); });
    return;
  }
  const std::string place = fmt::format("rank {}", kolo::rank());
  if (!with_pending) return;
  const auto handle = kolo::allreduce_async(std::span(values), kolo::ReduceOp::sum, {.name = "p"});
  kolo::shutdown();
  try {
    handle.wait();
  } catch (const kolo::AbortedError& error) {
    std::fputs(fmt::format("{}: {}\n", place, error.what()).c_str(), stdout);
  }
}

// Rank 2 is killed in step 7.
void eager_kill() {
  std::vector<float> values(1000, 1);
  for (int step = 1; step <= 1000; ++step) {
    if (step == 7 && kolo::rank() == 2) std::raise(SIGKILL);
    kolo::allreduce(std::span(values), kolo::ReduceOp::average, {.name = "x"});
  }
}

// On one rank of a set something fails that the other one does not take part in.
void fail_in_set() {
  const auto set = kolo::ProcessSet::create(std::vector<int>{0, 1});
  if (kolo::rank() == 0) {
    auto& thread = kolo::detail::current_runtime()->thread();
    thread.call(
        [&] { thread.fail(set.id(), std::make_exception_ptr(kolo::UnavailableError("a line is cut"))); });
  }
  std::vector<float> values(10, 1);
  if (set.contains_this_rank())
    print_error(
        [&] { kolo::allreduce(std::span(values), kolo::ReduceOp::sum, {.name = "g", .process_set = set}); });
  wait_for_everyone();
}

// The last rank forks a process that ends by an error of its own.
void fork_child() {
  if (kolo::rank() == kolo::size() - 1) {
    const pid_t child = fork();
    if (child == 0) std::exit(3);
    int status = 0;
    waitpid(child, &status, 0);
    print_place(fmt::format("child ended with {}", WEXITSTATUS(status)));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  wait_for_everyone();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argv[1];
  if (how == "own_communicator") return with_own_communicator();
  if (how == "own_single") return with_mpi_of_one_thread(MPI_THREAD_SINGLE);
  if (how == "own_funneled") return with_mpi_of_one_thread(MPI_THREAD_FUNNELED);
  if (how == "catch_different") setenv("KOLO_BUCKET_BYTES", ("100" + rank_by_launcher()).c_str(), 1);
  if (how == "catch" || how == "catch_different") return catch_and_print(argc, argv);
  if (how == "subset") kolo::init(std::vector<int>{2, 0});
  else kolo::init(&argc, &argv);

  const bool last = kolo::rank() == kolo::size() - 1;
  if (how == "subset") print_place("subset");
  if (how == "eager_stall") eager_stall();
  if (how == "eager_leave") eager_leave(false);
  if (how == "eager_shutdown") eager_leave(true);
  if (how == "eager_kill") eager_kill();
  if (how == "fail_in_set") fail_in_set();
  if (how == "fork") fork_child();
  if (how == "stall0") stall(0);
  if (how == "stall1") stall(1);
  if (how == "stall_in_branch") stall_in_branch();
  if (how == "stall_in_set") stall_in_set();
  if (how == "return" && last) return 0;
  if (how == "exit3" && last) std::exit(3);
  if (how == "throw" && last) throw std::runtime_error("the last rank's reason");
  if (how == "killed" && last) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // until the others wait
    raise(SIGKILL);
  }
  if (how == "asked_for_record") {
    wait_for_everyone();
    raise(SIGUSR2);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  if (how == "return" || how == "exit3" || how == "throw" || how == "killed") wait_for_everyone();
  return 0;
}
