// Opening kernel libraries.
#pragma once
#include <string>

#include "mnn/kernel.h"

namespace mnn {

// Loads a library for the life of the process and returns its table; NULL with the reason in `error`. Whether the table's ABI
// fits is for the caller to check.
const mnn_library *open_library(const char *path, std::string &error);

}  // namespace mnn
