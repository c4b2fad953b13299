#include <kolo/collectives/schedule/device_ranks.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include <kolo/core/base/env.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/json_text.h>
#include <kolo/core/base/log.h>
#include <kolo/core/base/mutex.h>
#include <kolo/core/runtime/group.h>

namespace kolo {
namespace {

using detail::Runtime;

// Of this process: NCCL wants the reductions of all ranks in one order, which one schedule alone has.
struct Joined {
  Mutex mutex;
  std::weak_ptr<DeviceCollectives> collectives KOLO_GUARDED_BY(mutex);
};
Joined& joined() {
  static Joined only;
  return only;
}

std::chrono::duration<double> init_timeout() {
  return std::chrono::duration<double>(env_double("KOLO_NCCL_INIT_TIMEOUT_S", 60, 0.001, 86400));
}

// The watchdog is to find first which ranks have not come to a reduction, if any.
std::chrono::duration<double> limit_of(std::chrono::duration<double> stall_abort) {
  return stall_abort.count() > 0 ? stall_abort + std::chrono::seconds(1) : stall_abort;
}

bool is_busy() {
  MutexLock lock(joined().mutex);
  return !joined().collectives.expired();
}

DevicePlace place_of(const DeviceLibrary& library, const Runtime& runtime, std::span<Device* const> gpus) {
  DevicePlace place;
  if (gpus.size() > 1)
    place.why_not = fmt::format("the session has {} GPUs; visible_device_list gives it one", gpus.size());
  else {
    try {
      place = library.describe(*gpus[0]);
    } catch (const std::exception& error) {
      place.why_not = error.what();
    }
  }
  place.host = runtime.process().hostname;
  place.busy = is_busy();
  return place;
}

std::string packed(const DevicePlace& p) {
  return json_text(nlohmann::json{p.host, p.gpu, p.slot, p.version, p.why_not, p.busy});
}
DevicePlace unpacked(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {json[0], json[1], json[2], json[3], json[4], json[5]};
}

// A rank that is gone: who waits for it outside of MPI must hear of it.
void throw_if_broken(Runtime& runtime) {
  runtime.thread().call([&] {
    if (const auto error = runtime.thread().error()) std::rethrow_exception(error);
  });
}

// All ranks learn which of them failed, and throw then. own: this rank's failure, if any.
void share(const std::string& library, const std::optional<Error>& own) {
  const auto text = own ? nlohmann::json{static_cast<int>(own->code()), own->what()} : nlohmann::json();
  std::map<std::string, std::vector<int>> failed;
  std::optional<Code> first;
  const auto texts = world_group().allgather(json_text(text));
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const auto theirs = nlohmann::json::parse(texts[rank]);
    if (theirs.is_null()) continue;
    failed[theirs[1].get<std::string>()].push_back(static_cast<int>(rank));
    if (!first) first = static_cast<Code>(theirs[0].get<int>());
  }
  if (!first) return;
  std::string list;
  for (const auto& [text, ranks] : failed)
    list += fmt::format("{}{} on rank{} {}", list.empty() ? "" : "; ", text, ranks.size() == 1 ? "" : "s",
                        fmt::join(ranks, ", "));
  throw_error(
      *first,
      fmt::format(
          "{} does not connect the ranks' GPUs before the first step: {}. NCCL_DEBUG=INFO shows what it "
          "does; NCCL_P2P_DISABLE=1 avoids broken access between GPUs; containers need a "
          "/dev/shm of 1 GiB; KOLO_ALLREDUCE=mpi does without it",
          library, list));
}

}  // namespace

std::shared_ptr<DeviceCollectives> detail::join_devices(Runtime& runtime, std::span<Device* const> gpus) {
  const DeviceLibrary& library = *device_library();
  Group& group = world_group();
  std::vector<DevicePlace> places;
  for (const std::string& text : group.allgather(packed(place_of(library, runtime, gpus))))
    places.push_back(unpacked(text));
  const bool is_first = group.rank() == 0;
  if (std::any_of(places.begin(), places.end(), [](const DevicePlace& place) { return place.busy; })) {
    if (is_first)
      log_info("gradients travel through the host's memory: another training step of this process has {}",
               library.name());
    return nullptr;
  }
  if (const std::string why = why_not_together(library.name(), places); !why.empty()) {
    if (runtime.options().allreduce == "nccl")
      throw FailedPreconditionError("KOLO_ALLREDUCE=nccl was asked for, but it cannot be: {}", why);
    if (is_first)
      log_warning("gradients travel through the host's memory, without {}: {}", library.name(), why);
    return nullptr;
  }
  std::optional<Error> failure;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const std::exception& error) {
      throw_if_broken(runtime);
      failure = Error(code_of(error), error.what());
    }
  };
  std::string id;
  if (is_first) attempt([&] { id = library.make_id(); });
  id = group.broadcast(id, 0);
  std::shared_ptr<DeviceCollectives> made;
  if (!id.empty())
    attempt([&] {
      made = library.join(*gpus[0], {.rank = group.rank(),
                                     .size = group.size(),
                                     .id = id,
                                     .timeout = init_timeout(),
                                     .limit = limit_of(runtime.options().stall_abort),
                                     .check_ranks = [&runtime] { throw_if_broken(runtime); }});
    });
  share(library.name(), failure);
  if (is_first) log_info("gradients are reduced by {} {} on the GPUs", library.name(), places[0].version);
  MutexLock lock(joined().mutex);
  joined().collectives = made;
  return made;
}

}  // namespace kolo
