// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "lockstep/sources/source.h"

namespace lockstep::sources {

// Arrays of samples: NumPy's X.npy with y.npy or labels.npy beside it (also X_train.npy, X_test.npy, ...), MNIST's
// *-images-idx3-ubyte and *-labels-idx1-ubyte (also .gz), CIFAR-10 and CIFAR-100 in their binary version. Bytes of
// shape [N, H, W], [N, H, W, 1] or [N, H, W, 3] become PNGs; other arrays stay arrays (.npy).
bool looks_like_npy(const SourceOptions& options);
std::unique_ptr<Source> open_npy(const SourceOptions& options);
bool looks_like_mnist(const SourceOptions& options);
std::unique_ptr<Source> open_mnist(const SourceOptions& options);
bool looks_like_cifar(const SourceOptions& options);
std::unique_ptr<Source> open_cifar(const SourceOptions& options);

// For sources of arrays: classes "0", "1", ...; a label in range or a user error; a sample of an array as a member
// (bytes of [H, W], [H, W, 1] or [H, W, 3] are an image, all else stays an array).
std::vector<std::string> number_names(int64_t count);
int32_t checked_label(int64_t label, const std::string& source, int64_t i);
SourceMember array_member(const std::string& type, std::span<const int64_t> shape, std::string_view bytes);

}  // namespace lockstep::sources
