// SPDX-License-Identifier: Apache-2.0
// Driven by safetensors_roundtrip.py: weights_probe IN OUT reads any file of weights and writes it as safetensors.
#include <cstdio>

#include "lockstep/base/error.h"
#include "lockstep/weights/weights_file.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const lockstep::weights::WeightsFile file(argv[1]);
    lockstep::weights::write_safetensors(argv[2], file.tensors());
  } catch (const lockstep::base::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return error.exit_code();
  }
  return 0;
}
