// What an agreed operation does on the communication thread.
#pragma once

#include <memory>
#include <vector>

#include <kolo/collectives/engine/work.h>

namespace kolo::detail {

/// Everything but allreduce and process sets. members: the job's numbers of the set's ranks, for messages;
/// root: in the set. The operation holds the result, `work` an error that all ranks have agreed on.
std::shared_ptr<Collective> execute(Communicator& communicator, const std::vector<int>& members,
                                    const Agreed& agreed, int root, Work& work);

}  // namespace kolo::detail
