// The beginning and the end of a kolo program: which rank is this, of how many, where.
#pragma once

#include <string>

#include <kolo/collectives/engine/options.h>

namespace kolo {

/// Finds the launcher (Open MPI, PMIx, Slurm, PMI), starts MPI unless the program did, and compares kolo's
/// version, the MPI library and the options over all ranks. Without a launcher it makes one rank and leaves
/// MPI alone. Options come from the environment (KOLO_…). argc and argv may be nullptr. A second call does
/// nothing. Registers an exit handler: return from main and exit(0) call shutdown(); another exit code and an
/// uncaught exception (printed as `rank <r> on <host>: <text>`) end the whole job. Throws, the same on every
/// rank: InvalidArgumentError for an option that does not parse, FailedPreconditionError with a table where
/// the ranks differ. After that process() still tells the rank, so that one rank prints it. Main thread.
/// Blocks until all ranks are here. MPI changes the environment meanwhile: a thread of the program that reads
/// it at the same time (getenv) may crash.
void init(int* argc, char*** argv);
/// With options set in code; the environment's are not read.
void init(int* argc, char*** argv, const EngineOptions& options);

/// Ends pending operations in AbortedError and returns when every rank has called it or is gone. Finalises
/// MPI only if init() started it; MPI cannot be started again then. Without init() it does nothing.
void shutdown();

/// All of these throw FailedPreconditionError `kolo is not initialised; call kolo::init() first` before
/// init() and after shutdown(). Any thread.
int rank();
int size();
int local_rank();  // among the ranks that share this host's memory
int local_size();
int cross_rank();  // among the ranks with this local rank, one on each host
int cross_size();
int node_count();
bool is_homogeneous();  // every host has the same number of ranks
std::string hostname();
/// What init() read or was given.
EngineOptions engine_options();

}  // namespace kolo
