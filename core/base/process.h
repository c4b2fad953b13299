// Who this process is among the ranks of its job: what init() found. Before init() it is rank 0 of 1.
#pragma once

#include <string>

namespace kolo {

/// This process's place among the ranks, which init finds. Numbers count from 0.
struct ProcessInfo {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks that share this host's memory
  int local_size = 1;
  int core_sharers = 1;  // ranks of this host with the same affinity mask, this one among them
  int cross_rank = 0;    // among the ranks with this local rank, one on each host
  int cross_size = 1;
  int node_count = 1;
  bool homogeneous = true;  // every host has the same number of ranks
  std::string hostname;
};

/// For core and its users: never throws, so that a program without init() runs as one rank.
const ProcessInfo& process();
/// Called by init() and shutdown() alone, while no other thread of kolo runs.
void set_process(ProcessInfo found);

/// Where a process that fails leaves a record of what it did: beside its checkpoints or logs. "": nobody has
/// said so yet, and the first one who does is believed. Any thread.
std::string record_folder();
void propose_record_folder(const std::string& folder);

}  // namespace kolo
