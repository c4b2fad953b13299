// Who may speak to a task, and what becomes of those who may not.
#include <gmock/gmock.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include <kolo/core/cluster/task_address.h>

#include "tests/core/cluster/garbage.h"
#include "tests/core/cluster/rpc_fakes.h"

namespace kolo::detail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

class RpcSecurity : public ::testing::Test {
 protected:
  RpcSecurity() { std::filesystem::create_directories(folder_); }
  ~RpcSecurity() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string written(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    std::ofstream(path(name)) << text;
    chmod(path(name).c_str(), mode);
    return path(name);
  }
  void openssl(const std::string& arguments) const {
    const std::string command =
        "cd " + folder_.string() + " && openssl " + arguments + " 2>/dev/null >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  // A CA, and a certificate of it for `localhost`.
  void make_certificates(const std::string& name) const {
    const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl("req -x509" + key + " -days 2 -subj /CN=ca-" + name + " -keyout " + name + "-ca.key -out " +
            name + "-ca.pem");
    written(name + ".ext", "subjectAltName=DNS:localhost\n");
    openssl("req -new" + key + " -subj /CN=task -keyout " + name + ".key -out " + name + ".csr");
    openssl("x509 -req -days 2 -in " + name + ".csr -CA " + name + "-ca.pem -CAkey " + name +
            "-ca.key -CAcreateserial -extfile " + name + ".ext -out " + name + ".pem");
  }
  LoadedCredentials tls(const std::string& name) const {
    return load_credentials(
        {.tls_ca = path(name + "-ca.pem"), .tls_cert = path(name + ".pem"), .tls_key = path(name + ".key")});
  }
  static RpcServerOptions options(LoadedCredentials credentials) {
    auto options = FakeTask::at("localhost:0");
    options.credentials = std::move(credentials);
    return options;
  }
  static void call(const FakeTask& task, LoadedCredentials credentials) {
    auto caller = task.caller();
    caller.credentials = std::move(credentials);
    status_of(*task.remote_worker(caller), soon());
  }

  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("rpc_security_test." + std::to_string(getpid()));
};

TEST_F(RpcSecurity, KeepsOutWhoHasNoOrAnotherToken) {
  const std::string secret = "correct horse battery";
  FakeTask task(options({.ca = "", .certificate = "", .key = "", .token = secret}));
  const auto refused = ThrowsMessage<FailedPreconditionError>(
      AllOf(HasSubstr(task.server.address() + " refused this process: no or another token"),
            Not(HasSubstr("horse"))));
  ::testing::internal::CaptureStderr();
  EXPECT_THAT([&] { call(task, {}); }, refused);
  EXPECT_THAT([&] { call(task, {.ca = "", .certificate = "", .key = "", .token = "correct horse batterx"}); },
              refused);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, Not(HasSubstr("horse")));
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 1);
  EXPECT_NO_THROW(call(task, {.ca = "", .certificate = "", .key = "", .token = secret}));
}

TEST_F(RpcSecurity, ReadsATokenOfItsOwnersAlone) {
  EXPECT_EQ(load_credentials({.token_file = written("good", "0123456789abcdef \n\n")}).token,
            "0123456789abcdef");
  EXPECT_THAT([&] { load_credentials({.token_file = written("open", "0123456789abcdef", 0640)}); },
              ThrowsMessage<FailedPreconditionError>(HasSubstr("can be read by others; chmod 600")));
  EXPECT_THAT([&] { load_credentials({.token_file = written("short", "0123456789abcde\n")}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("15 bytes")));
  EXPECT_THROW(load_credentials({.token_file = path("none")}), NotFoundError);
}

TEST_F(RpcSecurity, NamesTheTlsFileThatIsMissing) {
  EXPECT_THAT([&] { load_credentials({.tls_ca = path("ca"), .tls_cert = path("cert")}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("KOLO_CLUSTER_TLS_KEY is missing")));
}

TEST_F(RpcSecurity, ComparesSecretsWhole) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("", "ab"));
}

TEST_F(RpcSecurity, SpeaksTlsToHoldersOfItsCertificatesOnly) {
  make_certificates("ours");
  make_certificates("theirs");
  FakeTask task(options(tls("ours")));
  EXPECT_NO_THROW(call(task, tls("ours")));
  EXPECT_THROW(call(task, tls("theirs")), UnavailableError);
  EXPECT_THROW(call(task, {}), UnavailableError);
  // The certificate names localhost, not this address.
  auto caller = task.caller();
  caller.credentials = tls("ours");
  RemoteWorker by_number(
      make_channel("127.0.0.1:" + std::to_string(task_address_of(task.server.address()).port), caller),
      "/job:ps/replica:0/task:0");
  EXPECT_THROW(status_of(by_number, soon()), UnavailableError);
}

TEST_F(RpcSecurity, ServesOnBesideGarbage) {
  FakeTask task;
  const auto remote = task.remote_worker();
  status_of(*remote, soon());
  std::mt19937 random(47);
  std::string noise(1 << 20, '\0');
  for (char& byte : noise) byte = static_cast<char>(random());
  const std::string preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(send_raw(task.server.address(), noise));
    EXPECT_TRUE(send_raw(task.server.address(), "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    EXPECT_TRUE(send_raw(task.server.address(), preface.substr(0, 10)));
    EXPECT_TRUE(send_raw(task.server.address(), preface + noise.substr(0, 1000)));
    status_of(*remote, soon());
  }
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST_F(RpcSecurity, RefusesWhatIsOverItsBounds) {
  auto small = FakeTask::at("localhost:0");
  small.limits.control_bytes = 1000;
  small.limits.graph_nodes = 3;
  small.limits.tensor_bytes = 100'000;
  FakeTask task(std::move(small));
  const auto remote = task.remote_worker();
  EXPECT_THAT(
      [&] { cleanup_containers(*remote, std::vector<std::string>(100, std::string(20, 'c')), soon()); },
      ThrowsMessage<ResourceExhaustedError>(HasSubstr("a control message is limited to 1000 bytes")));
  PartRequest part;
  for (int i = 0; i < 4; ++i) part.graph.nodes.push_back(node("n" + std::to_string(i), "NoOp"));
  EXPECT_THAT([&] { register_part(*remote, "ab", part, soon()); },
              ThrowsMessage<ResourceExhaustedError>(HasSubstr("nodes is limited to 3; 4")));
  RunStepRequest step;
  step.session = "ab";
  step.feeds = {Tensor::zeros(DType::u8, {60'000}), Tensor::zeros(DType::u8, {60'000})};
  EXPECT_THAT([&] { task.remote_master()->run_step(step, soon()); },
              ThrowsMessage<ResourceExhaustedError>(HasSubstr("limited to 100000 bytes; 120000")));
  EXPECT_THAT(
      [&] {
        remote->set_variables(
            "ab", {{"", "v"}}, [](std::size_t) { return Tensor::zeros(DType::f64, {1 << 20}); }, soon());
      },
      ThrowsMessage<ResourceExhaustedError>(HasSubstr("limited to 100000; 8388608")));
  step.feeds = {Tensor::scalar(std::string(60'000, 'a')), Tensor::scalar(std::string(60'000, 'b'))};
  EXPECT_THAT([&] { task.remote_master()->run_step(step, soon()); },
              ThrowsMessage<ResourceExhaustedError>(HasSubstr("limited to 100000 bytes; 1200")));
  EXPECT_THROW(delete_session(*remote, "../x", soon()), InvalidArgumentError);
  EXPECT_THROW(cleanup_containers(*remote, {"a\nb"}, soon()), InvalidArgumentError);
  EXPECT_NO_THROW(status_of(*remote, soon()));
}

kolo::cluster::RunStepRequestDef step_of_one_feed();

// It is no stranger: its user has stopped it, or it was killed.
TEST_F(RpcSecurity, SaysNothingOfAClientThatLeavesInTheMidstOfACall) {
  FakeTask task(FakeTask::at("127.0.0.1:0"));
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 20; ++i)
    call_raw(task.server.address(), "RunStep", {step_of_one_feed().SerializeAsString()}, GRPC_COMPRESS_NONE,
             Behind::cancel);
  task.server.stop(std::chrono::seconds(10));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(RpcSecurity, SaysSoOfACallThatEndsBeforeAllHasCome) {
  FakeTask task(FakeTask::at("127.0.0.1:0"));
  ::testing::internal::CaptureStderr();
  call_raw(task.server.address(), "RunStep", {step_of_one_feed().SerializeAsString()});
  task.server.stop(std::chrono::seconds(10));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("a call ended before all that it announced had come"));
}

kolo::cluster::RunStepRequestDef step_of_one_feed() {
  kolo::cluster::RunStepRequestDef step;
  step.set_session("ab");
  step.set_feeds(1);
  return step;
}

TEST_F(RpcSecurity, EndsCallsWhoseClientFallsSilent) {
  auto impatient = FakeTask::at("127.0.0.1:0");
  impatient.limits.stalled_sender = std::chrono::milliseconds(200);
  FakeTask task(std::move(impatient));
  const std::string address = task.server.address();
  const std::string step = step_of_one_feed().SerializeAsString();
  kolo::cluster::PayloadHeader header;
  header.set_dtype(static_cast<std::uint32_t>(DType::f32));
  header.add_dims(1 << 20);
  header.set_bytes(4 << 20);
  const std::vector<std::vector<std::string>> calls{{}, {step}, {step, payload(header)}};
  for (const auto& messages : calls) {
    const grpc::Status status = call_raw(address, "RunStep", messages, GRPC_COMPRESS_NONE, Behind::silence);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << messages.size();
    EXPECT_THAT(status.error_details(), HasSubstr("did not come for 0.2 s"));
  }
  EXPECT_EQ(call_raw(address, "CreateSession", {""}, GRPC_COMPRESS_NONE, Behind::silence).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(RpcSecurity, LetsWatchersBeSilent) {
  auto impatient = FakeTask::at("localhost:0");
  impatient.limits.stalled_sender = std::chrono::milliseconds(50);
  FakeTask task(std::move(impatient));
  std::promise<void> ended;
  const auto remote = task.remote_worker();
  const auto watch = remote->watch([&](const TaskStatus* status, const std::exception_ptr&) {
    if (status == nullptr) ended.set_value();
  });
  auto end = ended.get_future();
  EXPECT_EQ(end.wait_for(std::chrono::seconds(1)), std::future_status::timeout);
  watch->cancel();
  EXPECT_EQ(end.wait_for(std::chrono::seconds(20)), std::future_status::ready);
}

TEST_F(RpcSecurity, RefusesAStepOfASessionThatIsNotThereBeforeItsFeedsCome) {
  FakeTask task(FakeTask::at("127.0.0.1:0"), false);
  task.check_session = [](const std::string& session) { throw AbortedError("Session {}", session); };
  task.start();
  const std::string step = step_of_one_feed().SerializeAsString();
  const grpc::Status status =
      call_raw(task.server.address(), "RunStep", {step}, GRPC_COMPRESS_NONE, Behind::silence);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_details(), HasSubstr("Session ab"));
}

}  // namespace
}  // namespace kolo::detail
