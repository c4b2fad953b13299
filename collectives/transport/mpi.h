// MPI as kolo uses it: codes as exceptions, handles that free themselves, messages between two ranks, notes
// between communication threads, and the memory of a node's ranks, found over it.
#pragma once

#include <mpi.h>

#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <kolo/collectives/transport/mailbox.h>
#include <kolo/collectives/transport/node_memory.h>
#include <kolo/collectives/transport/point_to_point.h>
#include <kolo/collectives/transport/topology.h>

namespace kolo::detail {

/// Throws UnavailableError `<call>: <MPI's text>` unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);
/// Between MPI_Init and MPI_Finalize.
bool mpi_is_running();

/// A communicator of kolo's own: errors on it return, and its messages meet nobody else's.
class MpiComm {
 public:
  MpiComm() = default;
  /// Takes over `comm`, which nobody else frees.
  static MpiComm adopt(MPI_Comm comm);
  /// Collective.
  static MpiComm duplicate(MPI_Comm source);
  MpiComm(MpiComm&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiComm& operator=(MpiComm&& other) noexcept {
    std::swap(comm_, other.comm_);
    return *this;
  }
  ~MpiComm();
  MPI_Comm get() const { return comm_; }

 private:
  explicit MpiComm(MPI_Comm comm) : comm_(comm) {}
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Messages between two ranks over MPI. One thread. `comm` outlives it.
class MpiPointToPoint final : public PointToPoint {
 public:
  explicit MpiPointToPoint(MPI_Comm comm);
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Request send(int to, std::span<const std::byte> bytes) override;
  Request receive(int from, std::span<std::byte> bytes) override;
  bool test(Request request) override;

 private:
  Request free_slot();

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<Request> free_;
};

/// Notes between communication threads over MPI. One thread.
class MpiMailbox final : public Mailbox {
 public:
  explicit MpiMailbox(MpiComm comm) : comm_(std::move(comm)) {}
  void post(int to, const std::string& text) override;
  std::optional<Mail> take() override;
  /// True when no note of this rank is still on its way.
  bool all_sent();
  MPI_Comm comm() const { return comm_.get(); }

 private:
  struct Outgoing {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MpiComm comm_;
  std::list<Outgoing> outgoing_;  // a list: MPI holds the address of the text
};

/// The memory of the ranks of `host`, which are those of this rank's node, in their order; empty, on all of
/// them, where it is alone or where one of them cannot reach another's memory: then there is one warning that
/// says why. Collective over `host` alone.
NodeView connect_node_memory(MPI_Comm host);

}  // namespace kolo::detail
