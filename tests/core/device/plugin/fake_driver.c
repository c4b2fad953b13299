/* A libcuda.so.1 that knows nothing but the version of CUDA that it is for. */
int cuInit(unsigned flags) { return (int)flags * 0; }
int cuDriverGetVersion(int* version) {
  *version = FAKE_DRIVER_VERSION;
  return 0;
}
