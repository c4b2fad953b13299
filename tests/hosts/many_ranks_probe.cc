// Counts what a rank sends through MPI, part by part of a job, and which descriptors it has open:
// many_ranks_probe FOLDER end|loss. Each rank writes FOLDER/RANK.json. With `loss` the last rank kills itself
// in the midst, the others hear of it and stay until they are killed. MPI's own collective calls are not
// counted: they take O(log n) messages a rank.
#include <mpi.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <kolo/kolo.h>

namespace {

constexpr int kRounds = 10;

struct Traffic {
  std::int64_t messages = 0, bytes = 0;
  std::set<int> partners;  // to whom, as ranks of MPI_COMM_WORLD
};

std::mutex mutex;
std::map<std::string, Traffic> parts;
std::string part = "init";

void begin(const std::string& name) {
  const std::lock_guard lock(mutex);
  part = name;
}

int world_rank(MPI_Comm comm, int rank) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &all);
  PMPI_Comm_group(comm, &some);
  int found = -1;
  PMPI_Group_translate_ranks(some, 1, &rank, all, &found);
  PMPI_Group_free(&all);
  PMPI_Group_free(&some);
  return found;
}

std::ptrdiff_t open_files() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return std::distance(begin(all), end(all)) - 1;  // but for the one that reads the folder
}

// MPI then has all connections that it may ever make.
void meet_everybody() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<int> values(static_cast<std::size_t>(ranks));
  std::vector<MPI_Request> requests;
  for (int rank = 0; rank < ranks; ++rank) {
    PMPI_Irecv(&values[static_cast<std::size_t>(rank)], 1, MPI_INT, rank, 0, MPI_COMM_WORLD,
               &requests.emplace_back());
    PMPI_Isend(&ranks, 1, MPI_INT, rank, 0, MPI_COMM_WORLD, &requests.emplace_back());
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

void write_counts(const std::string& folder, int rank, std::ptrdiff_t files_of_mpi, std::ptrdiff_t files) {
  const std::lock_guard lock(mutex);
  nlohmann::json counts = {{"files", {{"MPI", files_of_mpi}, {"kolo", files - files_of_mpi}}}};
  for (const auto& [name, traffic] : parts)
    counts[name] = {{"messages", traffic.messages}, {"bytes", traffic.bytes}, {"partners", traffic.partners}};
  const std::string path = folder + "/" + std::to_string(rank) + ".json";
  std::ofstream(path + ".part") << counts.dump() << "\n";
  std::filesystem::rename(path + ".part", path);
}

void reduce(int times) {
  std::vector<float> values(4, 1);
  for (int round = 0; round < times; ++round)
    kolo::allreduce(std::span(values), kolo::ReduceOp::max, {.name = "g"});
}

void train() {
  using namespace kolo;
  Graph graph;
  Scope s(graph);
  const Variable w(s.named("w"), zeros(s, DType::f32, {8, 4}));
  DistributedOptimizer optimizer(std::make_unique<AdamOptimizer>(0.01F));
  const auto step = optimizer.minimize(s, reduce_sum(s, square(s, w)));
  MonitoredTrainingSession session(graph, {.hooks = {std::make_shared<BroadcastGlobalVariablesHook>(0)}});
  session.run(step);
  begin("step");
  for (int round = 0; round < kRounds; ++round) session.run(step);
  begin("session's end");
  session.close();
}

void lose_one(int rank, int ranks) {
  try {
    if (rank == ranks - 1) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      raise(SIGKILL);
    }
    reduce(1);
  } catch (const kolo::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

// Who ended now would itself be a loss, told to those who have not ended yet.
[[noreturn]] void stay_a_while() {
  std::this_thread::sleep_for(std::chrono::minutes(2));
  std::_Exit(1);  // MPI_Finalize would wait for the lost one
}

}  // namespace

// The program's own, so libkolo's calls come here.
extern "C" int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
  int size = 0;
  PMPI_Type_size(type, &size);
  const int partner = world_rank(comm, to);
  {
    const std::lock_guard lock(mutex);
    Traffic& traffic = parts[part];
    ++traffic.messages;
    traffic.bytes += static_cast<std::int64_t>(count) * size;
    traffic.partners.insert(partner);
  }
  return PMPI_Isend(buffer, count, type, to, tag, comm, request);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string folder = argv[1];
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  meet_everybody();
  const std::ptrdiff_t files_of_mpi = open_files();
  kolo::init(&argc, &argv);
  const int rank = kolo::rank(), ranks = kolo::size();
  begin("first calls");
  reduce(3);
  begin("call");
  reduce(kRounds);
  begin("first step");
  train();
  const std::ptrdiff_t files = open_files();
  begin(argv[2]);
  if (argv[2] == std::string("loss")) {
    lose_one(rank, ranks);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // until all have answered
    write_counts(folder, rank, files_of_mpi, files);
    stay_a_while();
  }
  kolo::shutdown();
  write_counts(folder, rank, files_of_mpi, files);
  MPI_Finalize();
  return 0;
}
