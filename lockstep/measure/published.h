// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/csv.h"
#include "lockstep/base/json.h"
#include "lockstep/catalogue/catalogue.h"
#include "lockstep/forecast/calibration.h"
#include "lockstep/forecast/recording.h"
#include "lockstep/forecast/time.h"

namespace lockstep::measure {

// Rows of one report or laboratory that share a machine, found by how their source begins.
struct Origin {
  std::string name;
  std::vector<std::string> begins;
};

// published_names.json.
struct PublishedNames {
  std::map<std::string, std::string> gpus;    // as published -> id of the catalogue
  std::map<std::string, std::string> models;  // as published -> name of the zoo
  std::vector<Origin> origins;
};
PublishedNames parse_names(const base::Json& document);  // user error with the place
PublishedNames load_names();                             // the embedded one

// A published measurement, and what of ours it is compared with.
struct Published {
  int line = 0;  // of the file
  std::string model, framework, gpu, precision, metric, notes, source;
  int64_t gpus = 0;
  int64_t batch = 0;  // samples a GPU and step
  int64_t image_size = 0;
  double value = 0;
  bool pcie = false;  // what joins the GPUs, where the row says so

  std::string excluded;                                    // why there is no forecast; empty: there is one
  std::string zoo;                                         // name of the zoo
  std::string id;                                          // of the catalogue
  std::string origin;                                      // see Origin; without one, the first two parts of its source
  bool python = false;                                     // PyTorch's Python launched it, nothing compiled
  forecast::Layout layout = forecast::Layout::contiguous;  // PyTorch's own default
  bool updates = true;                                     // false: "fwd+bwd only": no optimizer ran

  double seconds() const;  // of one step, as published
};

// Reads the columns of results/published_training.csv and decides for each row whether it can be compared.
std::vector<Published> read_published(const base::Csv& csv, const PublishedNames& names,
                                      const catalogue::Catalogue& catalogue);

struct PublishedForecast {
  const Published* row = nullptr;
  forecast::Recording recording;  // the warm step only
  double seconds = 0;             // foretold by factors that had not seen this origin
  double low = 0, high = 0;       // its interval, by other origins' rows alone
  double bare = 0;                // without the family's factor
  double roofline = 0;            // every operator at the GPU's rates
  double by_era = 0;              // by the age of the framework alone, fitted without this origin
  forecast::CarriedStep carried = {};
  std::string variant_of = {};  // the calibrated GPU whose chip and memory the row's has: no factor carries its time

  double ratio() const { return seconds / row->seconds(); }  // above 1: slower than published
  bool inside() const { return row->seconds() >= low && row->seconds() <= high; }
};

// The recording of a job like that; called once for rows that share it.
using Tracer = std::function<forecast::Recording(const Published& row)>;

// One for each row that is not excluded; a row whose network cannot be traced becomes excluded with the reason.
// Each origin is foretold by families that were fitted without it.
std::vector<PublishedForecast> forecast_published(std::vector<Published>& rows, const catalogue::Catalogue& catalogue,
                                                  const forecast::GpuFamilies& families,
                                                  const forecast::Calibration& calibration, const Tracer& trace);

// Share of the steps that lie in their interval, every report counting once however many rows it has: so the intervals
// are made, since a user's machine is one more report.
double coverage_by_report(const std::vector<const PublishedForecast*>& forecasts);

// The steps on GPUs that take a factor: what factors are fitted on.
std::vector<forecast::CarriedStep> carried_steps(const std::vector<PublishedForecast>& forecasts);

// Parallel efficiency from 1 GPU to n, published and foretold, of rows that differ in nothing else.
struct Scaling {
  const PublishedForecast* one = nullptr;
  const PublishedForecast* many = nullptr;
  double published = 0;
  double foretold = 0;
};
std::vector<Scaling> compare_scaling(const std::vector<PublishedForecast>& forecasts);

}  // namespace lockstep::measure
