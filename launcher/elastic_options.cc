#include <kolo/launcher/elastic_options.h>

#include <unistd.h>

#include <cmath>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>
#include <kolo/launcher/option_rows.h>
#include <kolo/launcher/option_values.h>

namespace kolo::launcher {
namespace {

namespace po = boost::program_options;
using std::chrono::seconds;

constexpr const char* kOthers[] = {"min-ranks", "max-ranks", "discover",   "discover-every", "slots-per-host",
                                   "spares",    "cooldown",  "grow-after", "wait-for-hosts"};
constexpr const char* kScriptOfMpiOperator = "/etc/mpi/discover_hosts.sh";

int number(const po::variables_map& values, const char* name, int least, int otherwise) {
  if (values.count(name) == 0) return otherwise;
  return static_cast<int>(
      whole_number((std::string("--") + name).c_str(), values[name].as<std::string>(), least, kMostNumber));
}

seconds whole_seconds(const char* option, const std::string& text) {
  return seconds(std::llround(std::ceil(seconds_of(option, text))));
}

void read_cooldown(const std::string& text, PoolRules& rules) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos)
    throw InvalidArgumentError(
        "--cooldown \"{}\" is not valid; allowed: the least and the most seconds, as in 10:300", text);
  rules.least_cooling = whole_seconds("--cooldown", text.substr(0, colon));
  rules.most_cooling = whole_seconds("--cooldown", text.substr(colon + 1));
  if (rules.most_cooling < rules.least_cooling)
    throw InvalidArgumentError("--cooldown \"{}\": the most is less than the least", text);
}

constexpr OptionRow kElasticOptions[] = {
    {"elastic", "",
     "when a host is lost, go on with the others; when hosts come, with more ranks. --restarts is "
     "then 3 and counts failures of the program alone"},
    {"min-ranks", "N", "with --elastic: wait where fewer ranks than this would find room (1)"},
    {"max-ranks", "N", "with --elastic: never start more (all slots)"},
    {"discover", "CMD",
     "with --elastic: a command that prints the hosts that are there, one a line, as node1:2; left "
     "out: the hosts named, as far as they answer"},
    {"discover-every", "S", "with --elastic: seconds between two looks at the hosts (5)"},
    {"slots-per-host", "N", "with --discover: slots of a host that it prints without a number"},
    {"spares", "K", "with --elastic: hosts that stay unused until one is lost (0)"},
    {"cooldown", "S:S",
     "with --elastic: seconds for which a lost host is not used, doubled by each loss, and the most "
     "(10:300)"},
    {"grow-after", "S", "with --elastic: seconds between a start and one with more hosts (60)"},
    {"wait-for-hosts", "S", "with --elastic: give up when --min-ranks have not been there for so long (600)"},
};

}  // namespace

void describe_elastic(po::options_description& all) { describe(all, kElasticOptions); }

std::optional<ElasticOptions> read_elastic(const po::variables_map& values, std::optional<int> ranks) {
  if (values.count("elastic") == 0) {
    for (const char* name : kOthers)
      if (values.count(name) > 0)
        throw InvalidArgumentError("--{} belongs to --elastic, which is not given", name);
    return std::nullopt;
  }
  ElasticOptions elastic;
  PoolRules& rules = elastic.rules;
  rules.min_ranks = number(values, "min-ranks", 1, rules.min_ranks);
  rules.max_ranks = number(values, "max-ranks", 1, ranks.value_or(rules.max_ranks));
  rules.first_ranks = ranks.value_or(rules.first_ranks);
  rules.spares = number(values, "spares", 0, rules.spares);
  if (rules.min_ranks > rules.max_ranks)
    throw InvalidArgumentError("--min-ranks {} is more than the {} that there may be", rules.min_ranks,
                               count_of(rules.max_ranks, "rank"));
  if (ranks && (*ranks < rules.min_ranks || *ranks > rules.max_ranks))
    throw InvalidArgumentError("-n {} is not between --min-ranks {} and --max-ranks {}", *ranks,
                               rules.min_ranks, rules.max_ranks);
  if (values.count("cooldown") > 0) read_cooldown(values["cooldown"].as<std::string>(), rules);
  if (values.count("grow-after") > 0)
    rules.grow_after = whole_seconds("--grow-after", values["grow-after"].as<std::string>());
  if (values.count("wait-for-hosts") > 0)
    elastic.wait_for_hosts = whole_seconds("--wait-for-hosts", values["wait-for-hosts"].as<std::string>());
  if (values.count("start-timeout") > 0)
    elastic.start_timeout = whole_seconds("--start-timeout", values["start-timeout"].as<std::string>());
  if (values.count("discover") > 0) elastic.discover = values["discover"].as<std::string>();
  else if (values.count("host") + values.count("hostfile") == 0 && access(kScriptOfMpiOperator, X_OK) == 0)
    elastic.discover = kScriptOfMpiOperator;
  elastic.discover_every = seconds(number(values, "discover-every", 1, 5));
  if (values.count("slots-per-host") > 0) {
    if (elastic.discover.empty())
      throw InvalidArgumentError("--slots-per-host belongs to --discover, which is not given");
    elastic.slots_per_host = number(values, "slots-per-host", 1, 1);
  }
  return elastic;
}

void check_elastic(const ElasticOptions& elastic, const std::vector<Host>& listed) {
  if (!elastic.discover.empty()) return;
  const int slots = total_slots(listed);
  if (elastic.rules.min_ranks > slots)
    throw InvalidArgumentError("--min-ranks {} do not fit into the {} of {}; name more hosts, or --discover",
                               elastic.rules.min_ranks, count_of(slots, "slot"), format_hosts(listed));
  if (elastic.rules.spares >= static_cast<int>(listed.size()))
    throw InvalidArgumentError("--spares {} leaves none of the {} to run on", elastic.rules.spares,
                               count_of(listed.size(), "host"));
}

}  // namespace kolo::launcher
