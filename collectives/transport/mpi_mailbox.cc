#include <kolo/collectives/transport/mpi_mailbox.h>

namespace kolo::detail {

void MpiMailbox::post(int to, const std::string& text) {
  auto& note = outgoing_.emplace_back();
  note.text = text;
  check_mpi(MPI_Isend(note.text.data(), static_cast<int>(note.text.size()), MPI_BYTE, to, 0, comm_.get(),
                      &note.request),
            "MPI_Isend");
}

std::optional<Mail> MpiMailbox::take() {
  all_sent();
  int arrived = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, 0, comm_.get(), &arrived, &status), "MPI_Iprobe");
  if (arrived == 0) return std::nullopt;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  Mail mail{status.MPI_SOURCE, std::string(bytes, '\0')};
  check_mpi(MPI_Recv(mail.text.data(), bytes, MPI_BYTE, mail.from, 0, comm_.get(), MPI_STATUS_IGNORE),
            "MPI_Recv");
  return mail;
}

bool MpiMailbox::all_sent() {
  for (auto note = outgoing_.begin(); note != outgoing_.end();) {
    int sent = 0;
    check_mpi(MPI_Test(&note->request, &sent, MPI_STATUS_IGNORE), "MPI_Test");
    note = sent != 0 ? outgoing_.erase(note) : std::next(note);
  }
  return outgoing_.empty();
}

}  // namespace kolo::detail
