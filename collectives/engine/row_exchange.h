// The agreed operations whose results have another size than what goes in: rows that are gathered, scattered
// and exchanged. A rank learns only when the operation is carried out how large its result is, and may have
// no memory for it; then the operation fails on all ranks, which are told before anybody waits for that one.
#pragma once

#include <memory>
#include <vector>

#include <kolo/collectives/engine/work.h>

namespace kolo::detail {

/// Of an allgather, also of a group's, a gather, a scatter, an alltoall or an object. members: the job's
/// numbers of the set's ranks, for messages. root: in the set. The operation holds the result; `work` an
/// error that all ranks have agreed on: ResourceExhaustedError `rank <r> cannot allocate <n> bytes for the
/// result`. Cost besides the rows: a gather, a scatter and what is long ask for every rank's word first; of
/// what is short, each block carries the word.
std::shared_ptr<Collective> exchange_rows(Communicator& communicator, const std::vector<int>& members,
                                          const Agreed& agreed, int root, Work& work);

}  // namespace kolo::detail
