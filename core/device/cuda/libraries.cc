#include <kolo/core/device/cuda/libraries.h>

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include <kolo/core/base/env.h>

namespace kolo {
namespace {

template <typename Function>
Function* function_of(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// 91900 is "9.19.0".
std::string version_of_five_digits(std::size_t number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ':');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

std::vector<std::string> matches(const std::string& pattern) {
  std::vector<std::string> paths;
  glob_t found;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (std::size_t i = 0; i < found.gl_pathc; ++i) paths.push_back(found.gl_pathv[i]);
  globfree(&found);
  return paths;
}

// pip and conda put a package beside the python that it was installed for; so no python needs to be run.
std::vector<std::string> python_candidates(const std::string& soname) {
  std::vector<std::string> prefixes;
  for (const std::string& folder : split(env_string("PATH").value_or("")))
    if (access(fmt::format("{}/python3", folder).c_str(), X_OK) == 0)
      prefixes.push_back(fmt::format("{}/../lib", folder));
  if (const auto home = env_string("HOME")) prefixes.push_back(fmt::format("{}/.local/lib", *home));
  std::vector<std::string> paths;
  for (const std::string& prefix : prefixes)
    for (const char* packages : {"site-packages", "dist-packages"})
      for (std::string& path :
           matches(fmt::format("{}/python3*/{}/nvidia/*/lib/{}", prefix, packages, soname)))
        paths.push_back(std::move(path));
  return paths;
}

std::string path_of(void* library, const std::string& asked) {
  link_map* loaded = nullptr;
  const bool known = dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0 && loaded->l_name[0] != '\0';
  return known ? loaded->l_name : asked;
}

// It has no function that tells, but the line that NCCL_DEBUG=VERSION prints, "NCCL version 2.28.9+cuda13.0",
// in front of its code for GPUs.
int cuda_major_of_nccl(void* library) {
  constexpr std::size_t kInFront = std::size_t{8} << 20;
  constexpr std::string_view kMark = "+cuda";
  std::ifstream file(path_of(library, ""), std::ios::binary);
  std::string bytes(kInFront, '\0');
  bytes.resize(static_cast<std::size_t>(file.read(bytes.data(), kInFront).gcount()));
  const auto at = bytes.find(kMark);
  return at == std::string::npos ? 0 : std::atoi(bytes.c_str() + at + kMark.size());
}

// "" where nobody says.
std::string folder_of_plugin() {
  Dl_info found;
  if (dladdr(reinterpret_cast<const void*>(&folder_of_plugin), &found) == 0) return "";
  const std::string path = found.dli_fname;
  return path.substr(0, path.rfind('/'));
}

}  // namespace

LibraryKind cublas_lt_kind(int cuda_major) {
  return {.name = "cuBLASLt",
          .soname = fmt::format("libcublasLt.so.{}", cuda_major),
          .version =
              [](void* library) {
                auto* const version = function_of<std::size_t()>(library, "cublasLtGetVersion");
                return version == nullptr ? "" : version_of_five_digits(version());
              },
          .cuda_major = [cuda_major](void*) { return cuda_major; }};
}

LibraryKind cudnn_kind() {
  return {.name = "cuDNN",
          .soname = "libcudnn.so.9",
          .version =
              [](void* library) {
                auto* const version = function_of<std::size_t()>(library, "cudnnGetVersion");
                return version == nullptr ? "" : version_of_five_digits(version());
              },
          .cuda_major =
              [](void* library) {
                auto* const version = function_of<std::size_t()>(library, "cudnnGetCudartVersion");
                return version == nullptr ? 0 : static_cast<int>(version() / 1000);
              }};
}

LibraryKind nccl_kind() {
  return {.name = "NCCL",
          .soname = "libnccl.so.2",
          .version =
              [](void* library) {
                auto* const ask = function_of<int(int*)>(library, "ncclGetVersion");
                int version = 0;
                return ask == nullptr || ask(&version) != 0
                           ? ""
                           : version_of_five_digits(static_cast<std::size_t>(version));
              },
          .cuda_major = cuda_major_of_nccl};
}

void* FoundLibrary::function(const char* name) const {
  return library == nullptr ? nullptr : dlsym(library, name);
}

std::vector<std::string> library_candidates(const std::string& soname, const std::string& beside) {
  std::vector<std::string> paths;
  for (const std::string& folder : split(env_string("KOLO_CUDA_LIBRARIES").value_or("")))
    paths.push_back(fmt::format("{}/{}", folder, soname));
  if (!beside.empty()) paths.push_back(fmt::format("{}/{}", beside, soname));
  paths.push_back(soname);
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/opt/cuda/lib64"})
    for (std::string& path : matches(fmt::format("{}/{}", folder, soname))) paths.push_back(std::move(path));
  for (std::string& path : python_candidates(soname)) paths.push_back(std::move(path));
  return paths;
}

FoundLibrary find_library(const LibraryKind& kind, int cuda_major) {
  return find_library(kind, cuda_major, library_candidates(kind.soname, folder_of_plugin()));
}

FoundLibrary find_library(const LibraryKind& kind, int cuda_major,
                          const std::vector<std::string>& candidates) {
  FoundLibrary found;
  for (const std::string& path : candidates) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const std::string why = dlerror();  // begins with the path where the file itself is the matter
      found.tried.push_back(why.starts_with(path) ? why : fmt::format("{}: {}", path, why));
      continue;
    }
    const int major = kind.cuda_major(library);
    if (major != 0 && major != cuda_major) {
      found.tried.push_back(
          fmt::format("{}: for CUDA {}, {} is asked for", path_of(library, path), major, cuda_major));
      dlclose(library);  // its parts are found by their names alone, and the next one brings others
      continue;
    }
    found.library = library;
    found.path = path_of(library, path);
    found.version = kind.version(library);
    found.cuda_major = major;
    return found;
  }
  return found;
}

std::string LibraryFunctions::why_not() const {
  if (found_.library == nullptr)
    return fmt::format("{} does not open: {}", kind_.soname, fmt::join(found_.tried, ", "));
  return missing_.empty() ? "" : fmt::format("{} {} lacks {}", found_.path, found_.version, missing_);
}

}  // namespace kolo
