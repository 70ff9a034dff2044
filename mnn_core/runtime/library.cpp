#include "library.hpp"

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace mnn {

const mnn_library *open_library(const char *path, std::string &error) {
  using Entry = const mnn_library *(*)();
#if defined(_WIN32)
  HMODULE handle = LoadLibraryA(path);
  if (!handle) {
    error = "LoadLibrary failed with code " + std::to_string(GetLastError());
    return nullptr;
  }
  auto entry = reinterpret_cast<Entry>(GetProcAddress(handle, "mnn_kernels"));
#else
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    error = dlerror();
    return nullptr;
  }
  auto entry = reinterpret_cast<Entry>(dlsym(handle, "mnn_kernels"));
#endif
  if (!entry) {
    error = "it exports no mnn_kernels()";
    return nullptr;
  }
  const mnn_library *table = entry();
  if (!table) error = "its mnn_kernels() returned NULL";
  return table;
}

}  // namespace mnn
