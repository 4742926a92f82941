// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/onnx/model.h"
#include "lockstep/training/trained.h"

namespace lockstep::verbs::exporting {

enum class FileFormat { onnx, safetensors };
// By the name of the file. User error for another extension.
FileFormat file_format(const base::Path& file);

struct ExportOptions {
  base::Path to;
  bool fp16 = false;        // weights of two dims and more in 16 bits
  bool preprocess = false;  // of ONNX: the graph takes bytes, and normalises them
  std::string licence = {};
};

struct Exported {
  base::Path file;
  base::Path data;    // of ONNX beyond 2 GB: the tensors, beside it
  int64_t bytes = 0;  // of both
  int64_t tensors = 0;
  int64_t nodes = 0;                     // of ONNX
  std::string input = {}, outputs = {};  // of ONNX, for people: "image: float32 [batch, 3, 224, 224]"
  std::vector<std::string> notes = {};   // what the file does otherwise than `predict`

  base::Json to_json() const;
  std::string to_text() const;
};

// Writes the network with its weights. User error when there is no such form of it, or the file cannot be written
// there; machine error when the disk is full or fails.
Exported export_network(const training::Trained& trained, const ExportOptions& options);

// What an ONNX file of it says of itself.
std::vector<std::pair<std::string, std::string>> metadata_of(const training::Trained& trained,
                                                             const ExportOptions& options);

}  // namespace lockstep::verbs::exporting
