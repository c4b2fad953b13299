// The options of a job whose hosts come and go.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <boost/program_options.hpp>

#include <kolo/launcher/host_pool.h>

namespace kolo::launcher {

struct ElasticOptions {
  PoolRules rules;       // --min-ranks, --max-ranks, --spares, --cooldown, --grow-after
  std::string discover;  // --discover: a command that prints the hosts; "": the list, and whether they answer
  std::chrono::seconds discover_every{5};    // --discover-every
  std::optional<int> slots_per_host;         // --slots-per-host: of hosts that it prints without a number
  std::chrono::seconds wait_for_hosts{600};  // --wait-for-hosts: until min_ranks are there
  std::optional<std::chrono::seconds> start_timeout = {};  // --start-timeout: the same before the first start
  bool hides_stopped_code = false;     // the user has asked for no exit code of a stop: kolorun ends with 0
  static constexpr int kRestarts = 3;  // without --restarts
};

/// Adds them to `all`.
void describe_elastic(boost::program_options::options_description& all);

/// Nothing without --elastic. ranks: of -n, if given. Throws InvalidArgumentError for a value that is not
/// valid, for numbers that do not fit together, and where one of the others is given without --elastic.
std::optional<ElasticOptions> read_elastic(const boost::program_options::variables_map& values,
                                           std::optional<int> ranks);

/// Throws InvalidArgumentError where `listed`, the only hosts that there can be, are too few.
void check_elastic(const ElasticOptions& elastic, const std::vector<Host>& listed);

}  // namespace kolo::launcher
