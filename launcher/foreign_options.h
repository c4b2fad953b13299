// Options of mpirun, horovodrun and torchrun, in kolorun's words.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kolo::launcher {

struct OwnWords {
  std::vector<std::string> words;  // of kolorun; empty for an option that changes nothing here
  std::vector<std::string> mpi;    // for mpirun, as --mpi-args are
  std::size_t taken = 0;           // words of the command line that they stand for; 0: no foreign option
};

/// The option that starts at words[at], with its value. Throws InvalidArgumentError, which names kolorun's
/// counterpart, for one that it has in another form.
OwnWords own_words(const std::vector<std::string>& words, std::size_t at);

}  // namespace kolo::launcher
