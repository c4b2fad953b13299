#include <kolo/core/device/cuda/check_cuda.h>

#include <fmt/format.h>

#include <fstream>

#include <kolo/core/base/error.h>

namespace kolo {
namespace {

// By number where CUDA 12.4 has no name for them.
constexpr int kContained = 226, kTensorMemoryLeak = 721, kExternalDevice = 911;

constexpr char kSticky[] =
    "the GPU's context is lost, and nothing can be saved any more; KOLO_CUDA_SYNC=1 waits for the GPU after "
    "each piece of work, so that the error names it; dmesg shows the GPU's own record of it (Xid)";
constexpr char kNoCode[] =
    "this build has no code for this GPU; kolorun --check-build shows what it has been built for";

std::string of_old_driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0) return "there is no driver";
  return driver_too_old(version);
}

// What to do about it, "" where nobody knows.
std::string hint(cudaError_t code) {
  switch (static_cast<int>(code)) {
    case cudaErrorStubLibrary:
      return "libcuda.so.1 is the toolkit's stub, which stands for a driver while programs are linked; it "
             "must not be in LD_LIBRARY_PATH";
    case cudaErrorInsufficientDriver: return of_old_driver();
    case cudaErrorDevicesUnavailable:
      return "another process holds the GPU in exclusive mode; nvidia-smi -q -d COMPUTE shows the mode";
    case cudaErrorNoDevice:
      return "no GPU is visible: CUDA_VISIBLE_DEVICES hides them, or the container or the job was given none";
    case cudaErrorSystemNotReady:
      return "the fabric manager is not running (nvidia-fabricmanager), without which GPUs behind NVSwitch "
             "do not start";
    case cudaErrorSystemDriverMismatch:
      return "libcuda.so.1 and the kernel's driver are of different versions, as after an update without "
             "reboot";
    case cudaErrorCompatNotSupportedOnDevice:
      return "the toolkit's compat folder in LD_LIBRARY_PATH does not serve this kind of GPU";
    case cudaErrorUnknown:
      return "the kernel's driver does not answer: often a container without the GPU's device files";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion: return kNoCode;
    default: return is_sticky(code) ? kSticky : "";
  }
}

bool is_of_the_machine(cudaError_t code) {
  switch (static_cast<int>(code)) {
    case cudaErrorInitializationError:
    case cudaErrorStubLibrary:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
    case cudaErrorNoDevice:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
    case cudaErrorMpsConnectionFailed:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

}  // namespace

void check_cuda(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // told here: the next launch is not to tell it as its own
  const std::string text = describe_cuda(code);
  if (code == cudaErrorMemoryAllocation) throw ResourceExhaustedError("{}: {}", call, text);
  if (is_of_the_machine(code)) throw FailedPreconditionError("{}: {}", call, text);
  throw InternalError("{}: {}", call, text);
}

std::string describe_cuda(cudaError_t code) {
  const std::string what = hint(code);
  return fmt::format("{} ({}, {}){}{}", cudaGetErrorString(code), cudaGetErrorName(code),
                     static_cast<int>(code), what.empty() ? "" : "; ", what);
}

bool is_sticky(cudaError_t code) {
  switch (static_cast<int>(code)) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case kContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case kTensorMemoryLeak:
    case kExternalDevice: return true;
    default: return false;
  }
}

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// Within a major version every driver runs what a newer minor version has compiled (NVIDIA, CUDA
// Compatibility, "minor version compatibility").
std::string driver_module_version() {
  std::ifstream file("/sys/module/nvidia/version");
  std::string version;
  file >> version;
  return version;
}

std::string machine_with_library(const CudaApi& api, int gpu, const char* library, std::size_t version) {
  cudaDeviceProp found;
  check_cuda(api.get_device_properties(&found, gpu), "cudaGetDeviceProperties");
  int driver = 0;
  check_cuda(api.driver_get_version(&driver), "cudaDriverGetVersion");
  const std::string module = driver_module_version();
  return fmt::format("{}, driver {}{}(CUDA {}), {} {}.{}.{}", found.name, module, module.empty() ? "" : " ",
                     cuda_version_text(driver), library, version / 10000, version / 100 % 100, version % 100);
}

std::string driver_too_old(int driver) {
  if (driver == 0 || driver / 1000 >= CUDART_VERSION / 1000) return "";
  return fmt::format("the driver is for CUDA {}, this build is of CUDA {} and needs driver {} or newer",
                     cuda_version_text(driver), cuda_version_text(CUDART_VERSION), oldest_driver());
}

std::string oldest_driver() { return CUDART_VERSION / 1000 == 12 ? "525" : "580"; }

}  // namespace kolo
