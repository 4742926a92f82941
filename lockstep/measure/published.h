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

// What an era's one factor multiplies.
LOCKSTEP_CHOICE(EraScales, step, host)

// Framework versions that share one factor, found by how their name begins.
struct Era {
  std::string name;
  std::vector<std::string> begins;
  EraScales scales = EraScales::step;
  double factor = 1;
};

// published_names.json.
struct PublishedNames {
  std::map<std::string, std::string> gpus;    // as published -> id of the catalogue
  std::map<std::string, std::string> models;  // as published -> name of the zoo
  std::vector<Era> eras;
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

  std::string excluded;  // why there is no forecast; empty: there is one
  std::string zoo;       // name of the zoo
  std::string id;        // of the catalogue
  size_t era = 0;
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
  double seconds = 0;             // foretold, with the era's factor
  double bare = 0;                // without it
  double roofline = 0;            // every operator at the GPU's rates
  bool disputed = false;          // sources for the same thing differ by more than 15 %, and the forecast is among them

  double ratio() const { return seconds / row->seconds(); }  // above 1: slower than published
};

// The recording of a job like that; called once for rows that share it.
using Tracer = std::function<forecast::Recording(const Published& row)>;

// One for each row that is not excluded; a row whose network cannot be traced becomes excluded with the reason.
std::vector<PublishedForecast> forecast_published(std::vector<Published>& rows, const PublishedNames& names,
                                                  const catalogue::Catalogue& catalogue,
                                                  const forecast::Calibration& calibration, const Tracer& trace);

// The factor of each era that brings its forecasts nearest to what was published (least squares of the logarithm); 1
// for an era without rows.
std::vector<double> fit_eras(const std::vector<PublishedForecast>& forecasts, const PublishedNames& names,
                             const catalogue::Catalogue& catalogue, const forecast::Calibration& calibration);

// Parallel efficiency from 1 GPU to n, published and foretold, of rows that differ in nothing else.
struct Scaling {
  const PublishedForecast* one = nullptr;
  const PublishedForecast* many = nullptr;
  double published = 0;
  double foretold = 0;
};
std::vector<Scaling> compare_scaling(const std::vector<PublishedForecast>& forecasts);

}  // namespace lockstep::measure
