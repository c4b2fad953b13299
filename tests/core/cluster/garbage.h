// What a stranger may send to a server: bytes that are no calls, and calls that are none of a client's.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <kolo/core/cluster/rpc/caller.h>
#include <kolo/core/cluster/task_address.h>

#include "core/cluster/rpc/messages.pb.h"

namespace kolo::detail {

/// Sends bytes and waits for the other end to close, at most 3 s. False where nobody takes the connection.
inline bool send_raw(const std::string& address, const std::string& bytes) {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(task_address_of(address).port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool connected = connect(descriptor, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  const timeval patience{3, 0};
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (connected && send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    shutdown(descriptor, SHUT_WR);
    char answer[4096];
    while (recv(descriptor, answer, sizeof(answer), 0) > 0) {
    }
  }
  close(descriptor);
  return connected;
}

/// As payload.h has it: the size of the header, the header, and what follows it.
inline std::string payload(const kolo::cluster::PayloadHeader& header, const std::string& rest = "") {
  const std::string text = header.SerializeAsString();
  const auto size = static_cast<std::uint32_t>(text.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + text + rest;
}

/// Whether a client says that it has sent all, falls silent, or goes.
enum class Behind { end, silence, cancel };

/// One call of the master service, of messages as they are; how it ended.
inline grpc::Status call_raw(const std::string& address, const std::string& method,
                             const std::vector<std::string>& messages,
                             grpc_compression_algorithm compression = GRPC_COMPRESS_NONE,
                             Behind behind = Behind::end) {
  grpc::GenericStub stub(grpc::CreateChannel("ipv4:" + address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.AddMetadata("kolo-from", "stranger");
  context.AddMetadata("kolo-version", rpc_version());
  context.set_compression_algorithm(compression);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  grpc::CompletionQueue queue;
  const auto over = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, "/kolo.cluster.MasterService/" + method, &queue);
  call->StartCall(nullptr);
  bool open = over();
  for (std::size_t i = 0; open && i < messages.size(); ++i) {
    const grpc::Slice slice(messages[i]);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    open = over();
  }
  if (open && behind == Behind::end) {
    call->WritesDone(nullptr);
    over();
  }
  if (behind == Behind::cancel) context.TryCancel();
  grpc::Status status;
  call->Finish(&status, nullptr);
  over();
  queue.Shutdown();
  while (over()) {
  }
  return status;
}

}  // namespace kolo::detail
