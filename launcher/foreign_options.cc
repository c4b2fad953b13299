#include <kolo/launcher/foreign_options.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <kolo/core/base/count_of.h>
#include <kolo/core/base/error.h>

namespace kolo::launcher {
namespace {

enum class Kind {
  renamed,   // own: kolorun's name, the value stays; of two values 10 and 100 it makes 10:100
  elastic,   // likewise, and the job is elastic
  replaced,  // own: all of it
  for_mpi,   // handed to mpirun as it is
  dropped,   // kolorun does it anyway
  refused,   // own: what to write instead
};

struct Foreign {
  std::string_view name;  // without dashes in front, '-' for '_'
  Kind kind;
  size_t values;
  std::string_view own;
};

constexpr std::string_view kHosts = "kolorun starts the ranks of all hosts from one of them: --host a:2,b:2";
constexpr std::string_view kSlots = "a host's ranks are its slots: --host a:2,b:2";
constexpr std::string_view kSshPort = "--mpi-args \"--mca plm_rsh_args '-p 2222'\"";
constexpr std::string_view kModule = "start Python itself: kolorun -n 2 -- python3 -m MODULE";
constexpr std::string_view kTee =
    "--log-dir DIR: the lines of rank N are then in DIR/rank_N.log and on the terminal";
constexpr std::string_view kRedirects =
    "--log-dir DIR keeps the lines of rank N in DIR/rank_N.log; >/dev/null 2>&1 behind the command keeps "
    "them "
    "from the terminal";
constexpr std::string_view kLeaveOut = "kolorun has nothing of the kind; leave it out";

constexpr Foreign kForeign[] = {
    // mpirun
    {"np", Kind::renamed, 1, "-n"},
    {"hostfile", Kind::renamed, 1, "--hostfile"},
    {"machinefile", Kind::renamed, 1, "--hostfile"},
    {"host", Kind::renamed, 1, "--host"},
    {"bind-to", Kind::renamed, 1, "--bind"},
    {"output-filename", Kind::renamed, 1, "--log-dir"},
    {"tag-output", Kind::replaced, 0, "--prefix=always"},
    {"allow-run-as-root", Kind::dropped, 0, ""},
    {"oversubscribe", Kind::for_mpi, 0, ""},
    {"report-bindings", Kind::for_mpi, 0, ""},
    {"display-map", Kind::for_mpi, 0, ""},
    {"display-allocation", Kind::for_mpi, 0, ""},
    {"map-by", Kind::for_mpi, 1, ""},
    {"rank-by", Kind::for_mpi, 1, ""},
    {"use-hwthread-cpus", Kind::for_mpi, 0, ""},
    {"nooversubscribe", Kind::for_mpi, 0, ""},
    {"wdir", Kind::for_mpi, 1, ""},
    {"wd", Kind::for_mpi, 1, ""},
    {"mca", Kind::for_mpi, 2, ""},
    {"npernode", Kind::refused, 1, kSlots},
    {"ppr", Kind::refused, 1, kSlots},
    {"N", Kind::refused, 1, kSlots},
    {"timestamp-output", Kind::refused, 0, "kolo's log lines carry their time"},
    // horovodrun
    {"hosts", Kind::renamed, 1, "--host"},
    {"num-proc", Kind::renamed, 1, "-n"},
    {"mpi", Kind::dropped, 0, ""},
    {"gloo", Kind::refused, 0, "kolo reduces over MPI or NCCL; leave it out"},
    {"min-np", Kind::elastic, 1, "--min-ranks"},
    {"max-np", Kind::elastic, 1, "--max-ranks"},
    {"min-num-proc", Kind::elastic, 1, "--min-ranks"},
    {"max-num-proc", Kind::elastic, 1, "--max-ranks"},
    {"host-discovery-script", Kind::elastic, 1, "--discover"},
    {"blacklist-cooldown-range", Kind::elastic, 2, "--cooldown"},
    {"elastic-timeout", Kind::elastic, 1, "--wait-for-hosts"},
    {"reset-limit", Kind::renamed, 1, "--restarts"},
    {"network-interface", Kind::refused, 1, "--mpi-args \"--mca btl_tcp_if_include eth0\""},
    {"network-interfaces", Kind::refused, 1, "--mpi-args \"--mca btl_tcp_if_include eth0\""},
    {"ssh-port", Kind::refused, 1, kSshPort},
    {"p", Kind::refused, 1, kSshPort},
    {"start-timeout", Kind::renamed, 1, "--start-timeout"},
    {"ssh-identity-file", Kind::refused, 1, "--mpi-args \"--mca plm_rsh_args '-i FILE'\""},
    {"fusion-threshold-mb", Kind::refused, 1, "set HOROVOD_FUSION_THRESHOLD, in bytes, or KOLO_BUCKET_BYTES"},
    {"cycle-time-ms", Kind::refused, 1, "set KOLO_CYCLE_TIME_MS"},
    {"cache-capacity", Kind::refused, 1, "set KOLO_CACHE_CAPACITY"},
    {"autotune", Kind::refused, 0, "set KOLO_AUTOTUNE=1"},
    {"timeline-filename", Kind::refused, 1, "set KOLO_TIMELINE"},
    {"log-level", Kind::refused, 1, "set KOLO_LOG_LEVEL"},
    {"config-file", Kind::refused, 1, "kolorun reads no file of options; write them on its command line"},
    {"no-stall-check", Kind::refused, 0, "set KOLO_STALL_WARNING_S=0 and KOLO_STALL_ABORT_S=0"},
    // torchrun
    {"nproc-per-node", Kind::renamed, 1, "-n"},
    {"max-restarts", Kind::renamed, 1, "--restarts"},
    {"standalone", Kind::dropped, 0, ""},
    {"nnodes", Kind::refused, 1, kHosts},
    {"node-rank", Kind::refused, 1, kHosts},
    {"master-addr", Kind::refused, 1, kHosts},
    {"master-port", Kind::refused, 1, kHosts},
    {"rdzv-backend", Kind::refused, 1, kHosts},
    {"rdzv-endpoint", Kind::refused, 1, kHosts},
    {"rdzv-id", Kind::refused, 1, kHosts},
    {"rdzv-conf", Kind::refused, 1, kHosts},
    {"module", Kind::refused, 1, kModule},
    {"m", Kind::refused, 1, kModule},
    {"no-python", Kind::dropped, 0, ""},
    {"log-dir", Kind::renamed, 1, "--log-dir"},
    {"tee", Kind::refused, 1, kTee},
    {"t", Kind::refused, 1, kTee},
    {"redirects", Kind::refused, 1, kRedirects},
    {"r", Kind::refused, 1, kRedirects},
    {"local-ranks-filter", Kind::refused, 1, "kolorun prints the lines of all ranks, each with its rank"},
    {"role", Kind::refused, 1, kLeaveOut},
    {"monitor-interval", Kind::refused, 1, kLeaveOut},
    {"start-method", Kind::refused, 1, kLeaveOut},
};

const Foreign* find_foreign(const std::string& word) {
  const size_t dashes = word.find_first_not_of('-');
  if (dashes != 1 && dashes != 2) return nullptr;
  std::string name = word.substr(dashes, word.find('=') - dashes);
  std::replace(name.begin(), name.end(), '_', '-');
  const auto* const found = std::find_if(std::begin(kForeign), std::end(kForeign),
                                         [&](const Foreign& option) { return option.name == name; });
  return found == std::end(kForeign) ? nullptr : found;
}

}  // namespace

OwnWords own_words(const std::vector<std::string>& words, size_t at) {
  const Foreign* const option = find_foreign(words[at]);
  if (option == nullptr) return {};
  const size_t equals = words[at].find('=');
  const std::string name = words[at].substr(0, equals);
  const bool is_one_node = option->name == "nnodes" &&
                           (words[at].ends_with("=1") ||
                            (equals == std::string::npos && at + 1 < words.size() && words[at + 1] == "1"));
  if (is_one_node) return {{}, {}, equals == std::string::npos ? std::size_t{2} : std::size_t{1}};
  if (option->kind == Kind::refused) throw InvalidArgumentError("{}: {}", name, option->own);
  if (equals != std::string::npos && option->values == 0)
    throw InvalidArgumentError("{} takes no value", name);
  OwnWords own{{}, {}, 1};
  std::vector<std::string> values;
  if (equals != std::string::npos) values.push_back(words[at].substr(equals + 1));
  while (values.size() < option->values) {
    if (at + own.taken == words.size())
      throw InvalidArgumentError("{} takes {}, and {} given", name, count_of(option->values, "value"),
                                 values.size() == 1 ? "1 is" : fmt::format("{} are", values.size()));
    values.push_back(words[at + own.taken++]);
  }
  switch (option->kind) {
    case Kind::elastic: own.words = {"--elastic"}; [[fallthrough]];
    case Kind::renamed:
      own.words.insert(own.words.end(),
                       {std::string(option->own), fmt::format("{}", fmt::join(values, ":"))});
      break;
    case Kind::replaced: own.words = {std::string(option->own)}; break;
    case Kind::for_mpi:
      own.mpi = {"--" + std::string(option->name)};
      own.mpi.insert(own.mpi.end(), values.begin(), values.end());
      break;
    default: break;
  }
  return own;
}

}  // namespace kolo::launcher
