// Rank 1 ends while the others wait for it: by exit(0) before MPI_Finalize ("early"), or by an error of MPI's
// ("error").
#include <mpi.h>

#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1 && argc > 1 && std::strcmp(argv[1], "early") == 0) std::exit(0);
  if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 1 << 20, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
