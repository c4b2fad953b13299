#include <kolo/collectives/transport/mpi.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <kolo/core/base/error.h>
#include <kolo/core/base/log.h>

namespace kolo::detail {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw UnavailableError("{}: {}", call, std::string(text, length));
}

bool mpi_is_running() {
  int started = 0, finished = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&finished);
  return started != 0 && finished == 0;
}

MpiComm MpiComm::adopt(MPI_Comm comm) {
  MpiComm owner(comm);
  if (comm != MPI_COMM_NULL)
    check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return owner;
}

MpiComm MpiComm::duplicate(MPI_Comm source) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(source, &copy), "MPI_Comm_dup");
  return adopt(copy);
}

MpiComm::~MpiComm() {
  if (comm_ != MPI_COMM_NULL && mpi_is_running()) MPI_Comm_free(&comm_);
}

MpiPointToPoint::MpiPointToPoint(MPI_Comm comm) : comm_(comm) {
  check_mpi(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
}

PointToPoint::Request MpiPointToPoint::free_slot() {
  if (free_.empty()) {
    requests_.push_back(MPI_REQUEST_NULL);
    return static_cast<Request>(requests_.size()) - 1;
  }
  const Request slot = free_.back();
  free_.pop_back();
  return slot;
}

PointToPoint::Request MpiPointToPoint::send(int to, std::span<const std::byte> bytes) {
  const Request slot = free_slot();
  check_mpi(MPI_Isend(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, 0, comm_, &requests_[slot]),
            "MPI_Isend");
  return slot;
}

PointToPoint::Request MpiPointToPoint::receive(int from, std::span<std::byte> bytes) {
  const Request slot = free_slot();
  check_mpi(
      MPI_Irecv(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, from, 0, comm_, &requests_[slot]),
      "MPI_Irecv");
  return slot;
}

bool MpiPointToPoint::test(Request request) {
  int done = 0;
  check_mpi(MPI_Test(&requests_[request], &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0) free_.push_back(request);
  return done != 0;
}

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

namespace {

// Of the 47 bits of addresses that a process has: all of a node's memories are mapped by each of its ranks.
constexpr std::int64_t kMappedBytes = std::int64_t{1} << 46;

// One for the process, made when it first has neighbours and never taken down: tensors may lie in it to the
// end.
std::shared_ptr<NodeMemory> process_memory(int neighbours) {
  static auto* const memory =
      new std::shared_ptr<NodeMemory>(std::make_shared<NodeMemory>(kMappedBytes / neighbours));
  return *memory;
}

}  // namespace

NodeView connect_node_memory(MPI_Comm host) {
  int self = 0, size = 1;
  check_mpi(MPI_Comm_rank(host, &self), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(host, &size), "MPI_Comm_size");
  if (size == 1) return {};
  const auto ranks = static_cast<std::size_t>(size);
  std::shared_ptr<NodeMemory> own;
  std::string problem;
  NodeMemory::Address address;  // of 0 bytes: there is none
  try {
    own = process_memory(size);
    address = own->address();
  } catch (const Error& error) {
    problem = error.what();
  }
  std::vector<NodeMemory::Address> addresses(ranks);
  check_mpi(
      MPI_Allgather(&address, sizeof address, MPI_BYTE, addresses.data(), sizeof address, MPI_BYTE, host),
      "MPI_Allgather");
  std::vector<std::shared_ptr<const MemoryMapping>> peers(ranks);
  bool reached = own != nullptr;
  try {
    for (std::size_t place = 0; reached && place < ranks; ++place) {
      if (static_cast<int>(place) == self) continue;
      const auto& peer = addresses[place];
      reached = peer.bytes > 0;
      if (reached) peers[place] = NodeView::map(peer);
    }
  } catch (const Error& error) {
    problem = error.what();
    reached = false;
  }
  const int done = reached ? 1 : 0, told = problem.empty() ? 0 : 1;
  const int answer[] = {done, told};
  std::vector<int> answers(ranks * 2);
  check_mpi(MPI_Allgather(answer, 2, MPI_INT, answers.data(), 2, MPI_INT, host), "MPI_Allgather");
  bool all_reached = true, first_problem = true;
  for (std::size_t place = 0; place < ranks; ++place) {
    all_reached = all_reached && answers[2 * place] != 0;
    if (static_cast<int>(place) < self && answers[2 * place + 1] != 0) first_problem = false;
  }
  if (!problem.empty() && first_problem)
    log_warning(
        "the ranks of this host do not share memory and exchange messages through MPI, which is slower: {}",
        problem);
  return all_reached ? NodeView(std::move(own), self, std::move(peers)) : NodeView();
}

}  // namespace kolo::detail
