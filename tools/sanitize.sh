#!/usr/bin/env bash
# Runs the runtime's C++ under the thread, address and undefined-behaviour sanitizers.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for kind in thread address,undefined; do
  "${CXX:-c++}" -std=c++17 -O1 -g "-fsanitize=$kind" -fno-sanitize-recover=all -pthread -Imnn_core/include -Imnn_core/runtime \
    tests/runtime/stress.cpp mnn_core/runtime/{executor,memory,thread_pool}.cpp -o "$folder/stress"
  echo "== $kind: $("$folder/stress")"
done
