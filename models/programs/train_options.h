// kolo-train's command line.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace kolo::models {

/// A command line that cannot be obeyed: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class DeviceChoice { automatic, cpu, gpu };

struct TrainOptions {
  std::string model;
  std::optional<std::string> data;  // a folder, or "generated"
  std::string optimizer = "adam";
  double learning_rate = 0.001;
  double momentum = 0.9;
  std::int64_t batch_size = 64;       // per rank
  std::optional<std::int64_t> steps;  // in all, counted from step 0; without it: epochs
  std::int64_t epochs = 10;
  std::string checkpoint_dir;  // "": nothing is saved
  std::optional<std::int64_t> save_steps;
  std::string init_from;    // "": the initialisers
  std::string init_names;   // "": tensors are called as the variables
  bool keep_going = false;  // with a loss that is no number
  std::int64_t seed = 1;
  DeviceChoice device = DeviceChoice::automatic;
  int threads = 0;      // 0: OMP_NUM_THREADS, else cores ÷ local ranks
  std::string log_dir;  // "": no log files
  std::string trace;    // "": no trace
  bool evaluate = false;
  bool json = false;

  bool help = false;
  bool version = false;
};

/// Throws UsageError with one line that names the option, what was found and what would be right.
TrainOptions parse_train_options(int argc, const char* const* argv);
/// What --help prints.
std::string train_help();

}  // namespace kolo::models
