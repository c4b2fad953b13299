#include <kolo/core/base/autotune.h>

#include <utility>

#include <kolo/core/base/env.h>

namespace kolo {

Autotune autotune_of_environment() {
  constexpr const char* kName = "KOLO_AUTOTUNE";
  std::string table = env_string(kName).value_or("");
  if (table.ends_with(".json")) return {.by_time = false, .cost_table = std::move(table)};
  return {.by_time = env_choice(kName, "0", {"0", "1", "FILE.json"}) == "1", .cost_table = ""};
}

}  // namespace kolo
