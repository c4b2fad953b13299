// kolo-bench: measures training steps, single ops, reductions, the engine, the executor and clusters.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/program_options.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include <bench/allreduce_bench.h>
#include <bench/cluster_bench.h>
#include <bench/command_line.h>
#include <bench/engine_bench.h>
#include <bench/executor_bench.h>
#include <bench/keras_bench.h>
#include <bench/kernels_bench.h>
#include <bench/ops_bench.h>
#include <bench/peak_bench.h>
#include <bench/pictures_bench.h>
#include <bench/simulate_bench.h>
#include <bench/train_bench.h>
#include <bench/tune_bench.h>
#include <kolo/collectives/algorithms/allreduce_registry.h>
#include <kolo/collectives/job/init.h>
#include <kolo/core/base/error.h>
#include <kolo/core/base/process.h>
#include <kolo/core/base/text.h>
#include <kolo/models/models.h>
#include <kolo/models/samples.h>
#include <kolo/optimizer/registry.h>

namespace kolo::bench {
namespace {

namespace po = boost::program_options;

constexpr char kDefaultSizes[] = "1024,4096,16384,65536,262144,1048576,4194304,16777216,67108864";

po::options_description train_options() {
  po::options_description all("kolo-bench train");
  const auto text = [](const char* standard, const char* name) {
    return po::value<std::string>()->default_value(standard)->value_name(name);
  };
  all.add_options()("models", text("mlp,lenet", "LIST"), "models of the zoo, separated by commas")(
      "threads", po::value<std::string>()->value_name("T"),
      "threads that compute (default OMP_NUM_THREADS, else cores / ranks)")(
      "seconds", text("8", "S"), "time for each model (and round), after warming up")(
      "against", po::value<std::vector<std::string>>()->composing()->value_name("CMD"),
      "a peer's command, measured in turns: is run with --models and --seconds, prints the fields that "
      "--json prints; may be "
      "given more than once")("apart", po::bool_switch(),
                              "with several ranks: also, in turns, their steps where each trains for itself, "
                              "and the ratio of speeds")(
      "rounds", text("5", "N"), "with --against or --apart: how often each is measured")(
      "optimizer-level", text("1", "L"), "0: steps run node by node, 1: rewritten by the graph passes")(
      "precision", text("f32", "P"), (std::string(kPrecisionNames) + ", as kolo-train has it").c_str())(
      "device", text("auto", "WHERE"), "auto|cpu|gpu")(
      "feed", text("host", "WHAT"),
      "host: a batch in each step, from pinned memory for a GPU; none: the batch is "
      "the graph's own, on the device")("fetch", text("each", "WHEN"),
                                        "each: the loss in each step; never: nothing")(
      "optimizer", text("momentum", "NAME"), "what updates the variables")(
      "sharded", po::bool_switch(), "each rank updates its part of them");
  const auto size = [&](const char* name, const char* what) {
    all.add_options()(name, po::value<std::string>()->value_name("N"), what);
  };
  size("layers", "of gpt and lstm (default: as kolo-train has it)");
  size("width", "likewise");
  size("heads", "of gpt, likewise");
  size("context", "tokens of a sample, likewise");
  size("side", "of pictures, in pixels (default: as the model has it)");
  all.add_options()("dropout", po::value<std::string>()->value_name("P"),
                    "of gpt: the share of numbers that is dropped, below 1 (default 0)");
  size("classes", "columns of the logits; of gpt and lstm the vocabulary");
  size("steps", "timed, instead of --seconds: the loss after them is that of each run with this number");
  size("batch", "samples of a rank (default: of mlp 128, resnet50 8, vgg16 4, gpt 16, others 64)");
  return all;
}

po::options_description allreduce_options() {
  po::options_description all("kolo-bench allreduce (two ranks or more)");
  all.add_options()("sizes", po::value<std::string>()->default_value(kDefaultSizes)->value_name("BYTES,…"),
                    "multiples of 4")(
      "algorithm", po::value<std::string>()->value_name("NAME"),
      fmt::format("auto|{} (default: KOLO_ALLREDUCE, else auto)", fmt::join(allreduce_names(), "|")).c_str())(
      "buffers", po::value<std::string>()->default_value("bucket")->value_name("KIND"),
      "bucket: memory as buckets have it; user: ordinary memory")(
      "costs", po::value<std::string>()->default_value("")->value_name("FILE.json"),
      "of kolo-bench tune: also tells what the cost model predicts");
  return all;
}

po::options_description engine_options() {
  po::options_description all("kolo-bench engine (two ranks or more)");
  all.add_options()("tensors", po::value<std::string>()->default_value("1000")->value_name("N"),
                    "submitted in each step")(
      "bytes", po::value<std::string>()->default_value("1024")->value_name("B"),
      "of each tensor, a multiple of 4")("steps",
                                         po::value<std::string>()->default_value("50")->value_name("N"),
                                         "with and without fusion, after warming up");
  return all;
}

po::options_description executor_options() {
  po::options_description all("kolo-bench executor");
  all.add_options()("nodes", po::value<std::string>()->default_value("10000")->value_name("N"),
                    "nodes of each graph")("threads",
                                           po::value<std::string>()->default_value("1,2")->value_name("LIST"),
                                           "numbers of threads that run nodes, separated by commas")(
      "seconds", po::value<std::string>()->default_value("2")->value_name("S"),
      "time for each graph and number of threads, after warming up");
  return all;
}

po::options_description keras_options() {
  po::options_description all("kolo-bench keras");
  all.add_options()("threads", po::value<std::string>()->value_name("T"),
                    "threads that compute (default OMP_NUM_THREADS, else cores / ranks)")(
      "seconds", po::value<std::string>()->default_value("8")->value_name("S"),
      "time for each network, after warming up");
  return all;
}

po::options_description ops_options() {
  po::options_description all("kolo-bench ops");
  all.add_options()("threads", po::value<std::string>()->default_value("1")->value_name("T"),
                    "that compute; shares are of what one core can")(
      "seconds", po::value<std::string>()->default_value("1")->value_name("S"),
      "time for each op, after warming up");
  return all;
}

po::options_description kernels_options() {
  po::options_description all("kolo-bench kernels: kolo's own CPU kernels beside the library's");
  const auto text = [](const char* standard, const char* name) {
    return po::value<std::string>()->default_value(standard)->value_name(name);
  };
  all.add_options()("models", text("mlp,lenet,resnet20,resnet50,vgg16,gpt", "LIST"),
                    "whose steps are computed")("threads", text("1", "T"), "that compute")(
      "seconds", text("8", "S"), "time for each model");
  return all;
}

po::options_description peak_options() {
  po::options_description all("kolo-bench peak: multiply-adds and bytes a second of one core");
  all.add_options()("seconds", po::value<std::string>()->default_value("1")->value_name("S"),
                    "time for both together");
  return all;
}

po::options_description pictures_options() {
  po::options_description all("kolo-bench pictures");
  all.add_options()("data", po::value<std::string>()->value_name("FOLDER"),
                    "with pictures, in folders below it, too")(
      "side", po::value<std::string>()->default_value("224")->value_name("N"), "of the samples, in pixels")(
      "augment", po::value<std::string>()->default_value("")->value_name("LIST"), "as kolo-train takes it")(
      "seconds", po::value<std::string>()->default_value("8")->value_name("S"),
      "time, after each picture was read once");
  return all;
}

po::options_description cluster_options() {
  po::options_description all("kolo-bench cluster (without mpirun)");
  const auto text = [](const char* standard, const char* name) {
    return po::value<std::string>()->default_value(standard)->value_name(name);
  };
  all.add_options()("what", text("calls,transfers", "LIST"),
                    "calls: a step on another task; transfers: its values; exchange: as many bytes from all "
                    "servers as to them, at once; async, sync: training steps")(
      "seconds", text("1", "S"), "time for each row but of training, after warming up")(
      "workers", text("1,2,4", "LIST"), "numbers of workers that train")(
      "servers", text("1,2", "LIST"), "numbers of parameter servers that they train with")(
      "model", text("lenet", "NAME"), "that is trained")(
      "steps", text("40", "N"), "of each worker, after warming up")("threads", text("1", "T"),
                                                                    "that compute, in each worker")(
      "cluster", text("", "SPEC"),
      "as kolo-server's: measures as a worker of it (left out: starts all tasks on this machine)")(
      "task", text("0", "INDEX"), "with --cluster: of job worker");
  return all;
}

po::options_description tune_options() {
  po::options_description all("kolo-bench tune (two ranks or more)");
  all.add_options()("output", po::value<std::string>()->default_value("")->value_name("FILE.json"),
                    "for KOLO_AUTOTUNE=FILE.json (default: standard output)");
  return all;
}

po::options_description simulate_options() {
  return po::options_description("kolo-bench simulate: predicts, by the cost model; measures nothing");
}

std::vector<std::string> models_of(const po::variables_map& values) {
  const auto known = models::registered_models();
  for (const auto& model : items_of(values, "models"))
    if (std::find(known.begin(), known.end(), model) == known.end())
      throw UsageError(fmt::format("there is no model \"{}\"{}", model, did_you_mean(model, known)));
  return items_of(values, "models");
}

void run_train(const po::variables_map& values) {
  TrainBenchOptions options;
  options.models = models_of(values);
  if (values.count("threads") > 0)
    options.threads = static_cast<int>(count("threads", values["threads"].as<std::string>(), 1, 4096));
  options.seconds = seconds_of(values);
  options.optimizer_level =
      static_cast<int>(count("optimizer-level", values["optimizer-level"].as<std::string>(), 0, 1));
  const auto precision = precision_named(values["precision"].as<std::string>());
  if (!precision) throw UsageError(fmt::format("--precision must be one of {}", kPrecisionNames));
  options.precision = *precision;
  const auto is_first = [&](const char* option, const char* first, const char* second) {
    const auto text = values[option].as<std::string>();
    if (text != first && text != second)
      throw UsageError(
          fmt::format("--{} \"{}\" is not valid; it must be {} or {}", option, text, first, second));
    return text == first;
  };
  options.feeds = is_first("feed", "host", "none");
  options.fetches = is_first("fetch", "each", "never");
  using Device = TrainBenchOptions::Device;
  if (const auto device = values["device"].as<std::string>(); device != "auto")
    options.device = is_first("device", "gpu", "cpu") ? Device::gpu : Device::cpu;
  options.optimizer = values["optimizer"].as<std::string>();
  const auto optimizers = registered_optimizers();
  if (std::find(optimizers.begin(), optimizers.end(), options.optimizer) == optimizers.end())
    throw UsageError(fmt::format("there is no optimizer \"{}\"{}", options.optimizer,
                                 did_you_mean(options.optimizer, optimizers)));
  const auto chosen = [&](const char* option) {
    return values.count(option) > 0 ? count(option, values[option].as<std::string>(), 1, 1 << 24) : 0;
  };
  options.size = {.classes = chosen("classes"),
                  .layers = chosen("layers"),
                  .width = chosen("width"),
                  .heads = chosen("heads"),
                  .dropout = values.count("dropout") > 0 ? share_of(values, "dropout") : 0};
  if (values.count("context") > 0) options.context = chosen("context");
  if (values.count("side") > 0) options.side = chosen("side");
  if (values.count("batch") > 0) options.batch = chosen("batch");
  options.steps = chosen("steps");
  for (const auto& model : options.models)
    for (const char* size : {"layers", "width", "heads", "context", "dropout"})
      if (values.count(size) > 0 && !models::find_model(model).takes(size))
        throw UsageError(fmt::format("--{} cannot be chosen for {}; leave it out", size, model));
  for (const auto& model : options.models)
    if (options.side && models::find_model(model).sample.rank() != 3)
      throw UsageError(fmt::format("--side cannot be chosen for {}; leave it out", model));
  options.sharded = values["sharded"].as<bool>();
  options.apart = values["apart"].as<bool>();
  if (values.count("against") > 0) options.against = values["against"].as<std::vector<std::string>>();
  options.rounds = static_cast<int>(count("rounds", values["rounds"].as<std::string>(), 1, 1000));
  options.json = values["json"].as<bool>();
  train_bench(options);
}

void run_ops(const po::variables_map& values) {
  ops_bench({.threads = static_cast<int>(count("threads", values["threads"].as<std::string>(), 1, 4096)),
             .seconds = seconds_of(values),
             .json = values["json"].as<bool>()});
}

void run_kernels(const po::variables_map& values) {
  kernels_bench({.models = models_of(values),
                 .threads = static_cast<int>(count("threads", values["threads"].as<std::string>(), 1, 4096)),
                 .seconds = seconds_of(values),
                 .json = values["json"].as<bool>()});
}

void run_peak(const po::variables_map& values) {
  peak_bench({.seconds = seconds_of(values), .json = values["json"].as<bool>()});
}

void run_tune(const po::variables_map& values) { tune_bench({.output = values["output"].as<std::string>()}); }

void run_simulate(const po::variables_map& values) { simulate_bench({.json = values["json"].as<bool>()}); }

void run_pictures(const po::variables_map& values) {
  if (values.count("data") == 0) throw UsageError("--data is missing; it must be a folder of pictures");
  PicturesBenchOptions options{.data = values["data"].as<std::string>(),
                               .side = count("side", values["side"].as<std::string>(), 1, 1 << 14),
                               .augment = values["augment"].as<std::string>(),
                               .seconds = seconds_of(values),
                               .json = values["json"].as<bool>()};
  try {
    if (!options.augment.empty()) models::augmentation_from(options.augment);
  } catch (const InvalidArgumentError& error) {
    throw UsageError(fmt::format("--augment {}", error.what()));
  }
  pictures_bench(options);
}

void run_allreduce(const po::variables_map& values) {
  AllreduceBenchOptions options;
  for (const auto& size : items_of(values, "sizes")) {
    options.sizes.push_back(count("sizes", size, 4, std::int64_t{1} << 40));
    if (options.sizes.back() % 4 != 0)
      throw UsageError(fmt::format("--sizes \"{}\" is not valid; sizes are multiples of 4 bytes", size));
  }
  options.buffers = values["buffers"].as<std::string>();
  if (options.buffers != "bucket" && options.buffers != "user")
    throw UsageError(
        fmt::format("--buffers \"{}\" is not valid; it must be bucket or user", options.buffers));
  options.costs = values["costs"].as<std::string>();
  options.json = values["json"].as<bool>();
  allreduce_bench(options);
}

void run_engine(const po::variables_map& values) {
  EngineBenchOptions options;
  options.tensors = static_cast<int>(count("tensors", values["tensors"].as<std::string>(), 1, 1 << 20));
  options.bytes = count("bytes", values["bytes"].as<std::string>(), 4, std::int64_t{1} << 30);
  if (options.bytes % 4 != 0)
    throw UsageError(fmt::format("--bytes \"{}\" is not valid; it must be a multiple of 4", options.bytes));
  options.steps = static_cast<int>(count("steps", values["steps"].as<std::string>(), 1, 1 << 20));
  options.json = values["json"].as<bool>();
  engine_bench(options);
}

void run_executor(const po::variables_map& values) {
  ExecutorBenchOptions options;
  options.nodes = static_cast<int>(count("nodes", values["nodes"].as<std::string>(), 1, 1 << 22));
  options.threads.clear();
  for (const auto& threads : items_of(values, "threads"))
    options.threads.push_back(static_cast<int>(count("threads", threads, 1, 4096)));
  options.seconds = seconds_of(values);
  options.json = values["json"].as<bool>();
  executor_bench(options);
}

void run_keras(const po::variables_map& values) {
  KerasBenchOptions options;
  if (values.count("threads") > 0)
    options.threads = static_cast<int>(count("threads", values["threads"].as<std::string>(), 1, 4096));
  options.seconds = seconds_of(values);
  options.json = values["json"].as<bool>();
  keras_bench(options);
}

void run_cluster(const po::variables_map& values) {
  ClusterBenchOptions options;
  static const std::vector<std::string> kKnown = {"calls", "transfers", "exchange", "async", "sync"};
  options.what = items_of(values, "what");
  for (const auto& what : options.what)
    if (std::find(kKnown.begin(), kKnown.end(), what) == kKnown.end())
      throw UsageError(fmt::format("--what \"{}\" is not valid{}; it must be of {}", what,
                                   did_you_mean(what, kKnown), fmt::join(kKnown, ", ")));
  const auto number = [&](const char* option, int least, int most) {
    return static_cast<int>(count(option, values[option].as<std::string>(), least, most));
  };
  const auto numbers = [&](const char* option) {
    std::vector<int> all;
    for (const auto& item : items_of(values, option))
      all.push_back(static_cast<int>(count(option, item, 1, 64)));
    return all;
  };
  options.workers = numbers("workers");
  options.servers = numbers("servers");
  options.steps = number("steps", 1, 1 << 20);
  options.threads = number("threads", 1, 4096);
  options.task = number("task", 0, 1 << 20);
  options.seconds = seconds_of(values);
  options.cluster = values["cluster"].as<std::string>();
  options.model = values["model"].as<std::string>();
  const auto models = models::registered_models();
  if (std::find(models.begin(), models.end(), options.model) == models.end())
    throw UsageError(
        fmt::format("there is no model \"{}\"{}", options.model, did_you_mean(options.model, models)));
  options.json = values["json"].as<bool>();
  cluster_bench(options);
}

// The command line is read before init(), since the algorithm is one of init()'s options.
void choose_algorithm(const po::variables_map& values) {
  if (values.count("algorithm") == 0) return;
  const auto name = values["algorithm"].as<std::string>();
  auto known = allreduce_names();
  known.push_back("auto");
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw UsageError(fmt::format("--algorithm \"{}\" is not valid{}; it must be one of {}", name,
                                 did_you_mean(name, known), fmt::join(known, ", ")));
  setenv("KOLO_ALLREDUCE", name.c_str(), 1);
}

struct Command {
  const char* name;
  po::options_description (*options)();
  void (*run)(const po::variables_map& values);
  bool on_all_ranks = true;  // else rank 0 alone computes
};

constexpr Command kCommands[] = {
    {"train", train_options, run_train},
    {"ops", ops_options, run_ops, false},
    {"kernels", kernels_options, run_kernels, false},
    {"peak", peak_options, run_peak, false},
    {"pictures", pictures_options, run_pictures, false},
    {"allreduce", allreduce_options, run_allreduce},
    {"engine", bench::engine_options, run_engine},
    {"executor", executor_options, run_executor},
    {"keras", keras_options, run_keras},
    {"cluster", cluster_options, run_cluster},
    {"tune", tune_options, run_tune},
    {"simulate", simulate_options, run_simulate, false},
};

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  return names;
}

std::string help() {
  std::ostringstream text;
  text << fmt::format("kolo-bench {} [options]: measures on all ranks of the job; rank 0 prints.\n",
                      fmt::join(command_names(), "|"))
       << "  mpirun -n 2 kolo-bench train --models lenet\n\n";
  for (const Command& command : kCommands) text << command.options() << "\n";
  text << common_options();
  return text.str();
}

// What is to be done; a command of null tells `text`.
struct Request {
  const Command* command = nullptr;
  po::variables_map values = {};
  std::string text = {};
};

Request parse_request(int argc, const char* const* argv) {
  const std::string first = argc > 1 ? argv[1] : "", version = fmt::format("kolo-bench {}\n", KOLO_VERSION);
  if (first == "--help" || first == "-h") return {.text = help()};
  if (first == "--version") return {.text = version};
  const auto* chosen = std::find_if(std::begin(kCommands), std::end(kCommands),
                                    [&](const Command& command) { return first == command.name; });
  if (chosen == std::end(kCommands)) {
    const auto names = command_names();
    throw UsageError(first.empty()
                         ? fmt::format("what is to be measured? kolo-bench {}", fmt::join(names, ", "))
                         : fmt::format("there is no command \"{}\"{}", first, did_you_mean(first, names)));
  }
  Request request{.command = chosen, .values = parse(chosen->options(), argc - 1, argv + 1)};
  if (request.values["help"].as<bool>()) return {.text = help()};
  if (request.values["version"].as<bool>()) return {.text = version};
  choose_algorithm(request.values);
  return request;
}

void run(const Request& request) {
  const bool speaks = process().rank == 0;
  if (request.command == nullptr) {
    if (speaks) fmt::print("{}", request.text);
  } else if (speaks || request.command->on_all_ranks) {
    request.command->run(request.values);
  }
}

}  // namespace
}  // namespace kolo::bench

int main(int argc, char** argv) {
  using namespace kolo::bench;
  const auto fail = [](const char* text, int exit_code) {
    if (kolo::process().rank == 0) fmt::print(stderr, "kolo-bench: {}\n", text);
    kolo::shutdown();
    return exit_code;
  };
  std::string usage_error;
  Request request;
  try {
    request = parse_request(argc, argv);
  } catch (const UsageError& error) {
    usage_error = error.what();  // told once init() knows which rank this is
  }
  try {
    kolo::init(&argc, &argv);
  } catch (const std::exception& error) {
    return fail(error.what(), 1);  // the same on every rank
  }
  try {
    if (!usage_error.empty()) return fail(usage_error.c_str(), 2);
    run(request);
    return 0;
  } catch (const UsageError& error) {
    return fail(error.what(), 2);
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-bench: {}{}\n",
               kolo::process().size > 1 ? fmt::format("rank {}: ", kolo::process().rank) : "", error.what());
    return 1;
  }
}
