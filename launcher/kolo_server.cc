// kolo-server: a task of a cluster that runs parts of other processes' graphs and keeps their variables.
#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>

#include <kolo/core/base/error.h>
#include <kolo/core/base/input_file.h>
#include <kolo/core/base/text.h>
#include <kolo/core/cluster/client/check_server.h>
#include <kolo/core/cluster/cluster_spec.h>
#include <kolo/core/cluster/server.h>

namespace kolo::launcher {
namespace {

namespace po = boost::program_options;

constexpr int kBadCommandLine = 2;

struct CommandLineError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

po::options_description make_description() {
  po::options_description all("Options", 110, 60);
  const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
  all.add_options()("cluster", text("SPEC"),
                    "all tasks: 'ps|h:1;h:2,worker|h:3', JSON, or a file with one of these; left out: "
                    "KOLO_CLUSTER, else TF_CONFIG")("job", text("JOB"), "of this task")(
      "task", text("INDEX"), "of this task in its job")(
      "bind", text("ADDR"),
      "listen there instead of at the task's own address; 0.0.0.0 and ::: every interface")(
      "end-with-workers", "stop when each task of the jobs chief, master and worker has come and gone")(
      "tls-ca", text("FILE"),
      "PEM, with --tls-cert and --tls-key: TLS with certificates of this CA on both sides")(
      "tls-cert", text("FILE"), "of this task, naming its host")("tls-key", text("FILE"),
                                                                 "of the certificate")(
      "token-file", text("FILE"), "a secret of at least 16 bytes that all tasks and clients show")(
      "check", text("TARGET"), "say who serves at host:port and what it holds, within 5 s; nothing else")(
      "help,h", "print this")("version", "print the version");
  return all;
}

std::string help_text() {
  std::ostringstream text;
  text << "kolo-server is a task of a cluster, a parameter server as a rule (docs/clusters.md).\n\n"
          "  kolo-server --cluster 'ps|node1:2222,worker|node2:2222' --job ps --task 0\n"
          "  kolo-server --check node1:2222\n\n"
       << make_description()
       << "\nSignals: SIGTERM, SIGINT and SIGUSR1 let steps end for up to 10 s, then it exits with 0; a "
          "second SIGTERM "
          "ends it at\nonce.\n"
          "Exit code: 0; 1 if it cannot serve, or nobody answers --check; 2 for a command line that is not "
          "understood.\n";
  return text.str();
}

std::vector<std::string> option_names() {
  const po::options_description description = make_description();
  std::vector<std::string> names;
  for (const auto& option : description.options()) names.push_back("--" + option->long_name());
  return names;
}

po::variables_map parse(int argc, const char* const* argv) {
  const po::options_description description = make_description();
  try {
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv).options(description).positional({}).style(style).run(),
              values);
    return values;
  } catch (const po::unknown_option& error) {
    throw CommandLineError(fmt::format("unknown option {}{} (kolo-server --help lists them)",
                                       error.get_option_name(),
                                       did_you_mean(error.get_option_name(), option_names())));
  } catch (const po::error& error) {
    throw CommandLineError(fmt::format("{} (kolo-server --help lists the options)", error.what()));
  }
}

constexpr std::uint64_t kLargestSpec = 16 << 20;

ClusterSpec spec_of(const std::string& text) {
  if (text.starts_with("{")) return ClusterSpec::from_json(text);
  if (text.find('|') != std::string::npos) return ClusterSpec::from_text(text);
  const std::string content = text_or_nothing(text, kLargestSpec);  // the text may be no path at all
  if (content.empty())
    throw CommandLineError(
        fmt::format("--cluster \"{}\" is neither JSON, nor of the form 'ps|host:port,worker|host:port', nor "
                    "a file that can be read",
                    text));
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  const std::string spec = content.substr(first, content.find_last_not_of(" \t\r\n") + 1 - first);
  return spec.starts_with("{") ? ClusterSpec::from_json(spec) : ClusterSpec::from_text(spec);
}

// "" where the option is not given.
std::string text_of(const po::variables_map& values, const char* name) {
  return values.count(name) > 0 ? values[name].as<std::string>() : std::string();
}

ClusterCredentials credentials_of(const po::variables_map& values) {
  return {.tls_ca = text_of(values, "tls-ca"),
          .tls_cert = text_of(values, "tls-cert"),
          .tls_key = text_of(values, "tls-key"),
          .token_file = text_of(values, "token-file")};
}

struct Task {
  ClusterSpec cluster;
  ServerOptions options;
};

// What the command line leaves out is of the environment.
Task task_of(const po::variables_map& values) {
  Task task;
  if (values.count("cluster") == 0) {
    const ClusterEnvironment environment = ClusterSpec::from_environment();
    if (!environment.cluster)
      throw CommandLineError(
          "the cluster is missing; give it, as in --cluster 'ps|node1:2222,worker|node2:2222' --job ps "
          "--task 0");
    task.cluster = environment.cluster;
    task.options.job_name = environment.job_name;
    task.options.task_index = environment.task_index;
  } else {
    task.cluster = spec_of(text_of(values, "cluster"));
  }
  if (values.count("job") > 0) task.options.job_name = text_of(values, "job");
  if (values.count("task") > 0) {
    const auto index = parse_int64(text_of(values, "task"));
    if (!index || *index < 0 || *index > INT32_MAX)
      throw CommandLineError(fmt::format("--task \"{}\" is not valid; allowed: a whole number of at least 0",
                                         text_of(values, "task")));
    task.options.task_index = static_cast<int>(*index);
  }
  task.options.bind_address = text_of(values, "bind");
  if (values.count("end-with-workers") > 0) task.options.end_with_workers = true;
  task.options.credentials = credentials_of(values);
  return task;
}

void run(int argc, const char* const* argv) {
  const po::variables_map values = parse(argc, argv);
  if (values.count("help") > 0) return fmt::print("{}", help_text());
  if (values.count("version") > 0) return fmt::print("kolo-server {}\n", KOLO_VERSION);
  if (values.count("check") > 0)
    return fmt::print("{}", check_server(text_of(values, "check"), credentials_of(values)));
  const Task task = task_of(values);
  Server(task.cluster, task.options).join();
}

int guarded_main(int argc, const char* const* argv) {
  try {
    run(argc, argv);
    if (std::fflush(stdout) == 0) return 0;
    fmt::print(stderr, "kolo-server: stdout cannot be written\n");
    return 1;
  } catch (const CommandLineError& error) {
    fmt::print(stderr, "kolo-server: {}\n", error.what());
    return kBadCommandLine;
  } catch (const std::exception& error) {
    fmt::print(stderr, "kolo-server: {}\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace kolo::launcher

int main(int argc, char** argv) { return kolo::launcher::guarded_main(argc, argv); }
