// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "lockstep/data/source.h"

namespace lockstep::data {

// Arrays of samples: NumPy's X.npy with y.npy or labels.npy beside it (also X_train.npy, X_test.npy, ...), MNIST's
// *-images-idx3-ubyte and *-labels-idx1-ubyte, CIFAR-10 and CIFAR-100 in their binary version. Bytes of shape
// [N, H, W], [N, H, W, 1] or [N, H, W, 3] become PNGs; other arrays stay arrays (.npy).
bool looks_like_npy(const SourceOptions& options);
std::unique_ptr<Source> open_npy(const SourceOptions& options);
bool looks_like_mnist(const SourceOptions& options);
std::unique_ptr<Source> open_mnist(const SourceOptions& options);
bool looks_like_cifar(const SourceOptions& options);
std::unique_ptr<Source> open_cifar(const SourceOptions& options);

}  // namespace lockstep::data
