#include <kolo/launcher/mpi.h>

#include <algorithm>
#include <cctype>

#include <kolo/core/base/text.h>

namespace kolo::launcher {
namespace {

// The first one behind `words`; "" if they, or it, are not in the text.
std::string version_after(std::string_view text, std::string_view words) {
  const size_t found = text.find(words);
  if (found == std::string_view::npos) return "";
  text.remove_prefix(found + words.size());
  text.remove_prefix(std::min(text.find_first_of("0123456789"), text.size()));
  std::string version(text.substr(0, text.find_first_not_of("0123456789.")));
  while (!version.empty() && version.back() == '.') version.pop_back();
  return version;
}

}  // namespace

std::string Mpi::text() const {
  const char* const name = kind == MpiKind::open_mpi ? "Open MPI"
                           : kind == MpiKind::mpich  ? "MPICH"
                           : kind == MpiKind::intel  ? "Intel MPI"
                                                     : "an unknown MPI";
  return version.empty() ? name : std::string(name) + " " + version;
}

int Mpi::major_version() const {
  return static_cast<int>(parse_int64(version.substr(0, version.find('.'))).value_or(0));
}

Mpi parse_mpi(std::string_view text) {
  const auto has = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
  if (has("Open MPI")) return {MpiKind::open_mpi, version_after(text, "Open MPI")};
  // Its own version is another: only Open MPI from 5 on has it.
  if (has("PRRTE") || has("prterun")) return {MpiKind::open_mpi, "5"};
  if (has("Intel(R) MPI")) return {MpiKind::intel, version_after(text, "Version")};
  if (has("Intel MPI")) return {MpiKind::intel, version_after(text, "Intel MPI")};
  if (has("HYDRA")) return {MpiKind::mpich, version_after(text, "Version:")};
  if (has("MPICH")) return {MpiKind::mpich, version_after(text, "MPICH")};
  return {};
}

const Mpi& own_mpi() {
  static const Mpi own = parse_mpi(KOLO_MPI_NAME);
  return own;
}

bool can_start(const Mpi& launcher, const Mpi& program) {
  if (launcher.kind == MpiKind::unknown || program.kind == MpiKind::unknown) return true;
  return launcher.has_hydra() == program.has_hydra();
}

}  // namespace kolo::launcher
