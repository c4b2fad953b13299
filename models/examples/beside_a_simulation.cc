// A program with an MPI of its own: even ranks simulate, odd ranks learn from what they send, in step.
// mpirun -n 4 beside_a_simulation
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <vector>

#include <kolo/collectives/job/mpi_interop.h>
#include <kolo/kolo.h>

constexpr int kSteps = 600, kBatch = 64;

// The simulation: its times, and where the damped pendulum then is. It knows nothing of kolo.
void simulate(int learner) {
  std::vector<float> samples(2 * kBatch);
  for (int step = 0; step < kSteps; ++step) {
    for (int i = 0; i < kBatch; ++i) {
      const float t = static_cast<float>((step * kBatch + 17 * i) % 1000) / 1000;
      samples[i] = t;
      samples[kBatch + i] = std::exp(-t) * std::cos(6 * t);
    }
    MPI_Send(samples.data(), 2 * kBatch, MPI_FLOAT, learner, 0, MPI_COMM_WORLD);
  }
}

kolo::Tensor column(const float* values) {
  return kolo::Tensor::of<float>({kBatch, 1}, std::span(values, kBatch));
}

void learn(int simulator, MPI_Comm learners) {
  kolo::init(learners);  // kolo's ranks are those of this communicator
  kolo::Graph graph;
  graph.set_seed(1);  // the same first weights in every run
  kolo::Scope s(graph);
  auto t = kolo::placeholder(s, kolo::DType::f32, {-1, 1}),
       y = kolo::placeholder(s, kolo::DType::f32, {-1, 1});
  auto hidden = kolo::tanh(s, kolo::models::dense(s, t, 32, "hidden"));
  auto loss = kolo::mean_squared_error(s, kolo::models::dense(s, hidden, 1, "position"), y);
  kolo::DistributedOptimizer optimizer(std::make_unique<kolo::AdamOptimizer>(0.02f));
  auto train_op = optimizer.minimize(s, loss);
  kolo::MonitoredTrainingSession session(graph,
                                         {.hooks = {std::make_shared<kolo::BroadcastGlobalVariablesHook>(0),
                                                    std::make_shared<kolo::StopAtStepHook>(kSteps)}});
  std::vector<float> samples(2 * kBatch);
  float first = -1, last = 0;
  while (!session.should_stop()) {
    MPI_Recv(samples.data(), 2 * kBatch, MPI_FLOAT, simulator, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const auto values =
        session.run({loss, train_op}, {{t, column(samples.data())}, {y, column(samples.data() + kBatch)}});
    last = values[0].value<float>();
    if (first < 0) first = last;
  }
  if (kolo::rank() == 0)
    std::printf("learned on %d ranks: loss %.4f, then %.4f\n", kolo::size(), first, last);
  session.close();
  kolo::shutdown();  // before MPI_Finalize
}

int main(int argc, char** argv) {
  int level = 0, rank = 0, ranks = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);  // kolo has a thread of its own that calls MPI
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks % 2 != 0) {
    if (rank == 0)
      std::fprintf(stderr, "ranks learn and simulate in pairs: mpirun -n 4 beside_a_simulation\n");
    MPI_Finalize();
    return 1;
  }
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (rank % 2 == 0) simulate(rank + 1);
  else learn(rank - 1, half);
  MPI_Comm_free(&half);
  MPI_Finalize();
}
