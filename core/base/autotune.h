// What kolo chooses by a stopwatch.
#pragma once

#include <string>

namespace kolo {

/// KOLO_AUTOTUNE: 0, 1 or FILE.json.
struct Autotune {
  bool by_time = false;    // 1: the eager engine's parameters and a GPU's engines are chosen by measuring
  std::string cost_table;  // FILE.json: what `kolo-bench tune` has measured; "" for none
};

/// As the variable is now. Throws InvalidArgumentError for another value.
Autotune autotune_of_environment();

}  // namespace kolo
