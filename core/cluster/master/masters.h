// The masters of this process, so that its own clients reach them without a socket.
#pragma once

#include <memory>
#include <string>

#include <kolo/core/cluster/master/master.h>

namespace kolo::detail {

/// From now on a client of this process finds the master under its target. Any thread.
void add_master(const std::string& target, const std::shared_ptr<Master>& master);
void remove_master(const std::string& target);
/// nullptr where no server of this process has the target.
std::shared_ptr<Master> find_master(const std::string& target);

}  // namespace kolo::detail
