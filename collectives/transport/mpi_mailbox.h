// Notes between communication threads over MPI.
#pragma once

#include <list>
#include <optional>
#include <string>

#include <kolo/collectives/transport/mailbox.h>
#include <kolo/collectives/transport/mpi_handles.h>

namespace kolo::detail {

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

}  // namespace kolo::detail
