// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/service.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/image/decode.h"
#include "lockstep/loader/decode_memory.h"
#include "lockstep/serving/exposition.h"
#include "lockstep/serving/infer_message.h"
#include "lockstep/version.h"
#include "lockstep/web/page.h"

namespace lockstep::serving {
namespace {

using base::Blame;
using base::Error;
using base::Json;
using base::text;
using web::Answer;
using web::Request;
using web::Response;

constexpr int64_t kPictureSize = 1280;  // pixels of its longer side
constexpr int kPictureQuality = 85;
constexpr int64_t kMaxTop = 1000;
constexpr int64_t kBytesOfPixel = 10;  // decoded, resized, drawn on: 613 MB were measured for 64 Mpx
// Two of the largest images at a time, or twenty of a camera. A file of 200 kB may hold an image of 64 Mpx, and a
// server decodes on every core: without a bound for all of them a few small requests would take the memory of a node.
constexpr int64_t kDecodedAtOnce = 2 * kMaxServedPixels * kBytesOfPixel;

Response answer_to(const std::exception& why) {
  const auto* error = dynamic_cast<const Error*>(&why);
  if (error && error->blame() == Blame::user) return web::error_response(400, error->what());
  std::fprintf(stderr, "a request failed: %s\n", why.what());
  return web::error_response(500, "the server failed; its log has why");
}

Response too_busy() {
  Response response = web::error_response(429, "too many requests at once; try again");
  response.set("Retry-After", "1");
  return response;
}

// The rows of one request on their way through the network.
class Asked : public Work {
 public:
  Asked(std::shared_ptr<const ServedModel> model, Answer answer, double deadline, loader::DecodeMemory& memory)
      : model_(std::move(model)), answer_(std::move(answer)), deadline_(deadline), memory_(memory) {}

  bool is_late() const final { return base::steady_seconds() > deadline_; }
  void fail(const std::exception& why) final {
    answer_(is_late() ? web::error_response(504, "its turn did not come in time") : answer_to(why));
  }
  int64_t rows() const override { return 1; }
  // Of one model, images and numbers apart.
  Kind kind() const final { return {model_.get(), are_numbers() ? 1 : 0}; }
  virtual bool are_numbers() const { return false; }
  virtual int64_t top() const = 0;
  void keep(std::vector<RowAnswer> answers) { answers_ = std::move(answers); }

  const ServedModel& model() const { return *model_; }
  const std::vector<EncodedRow>& encoded() const { return encoded_; }
  void give(Response response) const { answer_(std::move(response)); }

 protected:
  // Until the end of the scope; user error when it is no image. One that is too large is refused before it is decoded.
  loader::DecodeMemory::Held room_for(std::string_view file) const {
    const image::ImageInfo info = image::read_image_info(std::as_bytes(std::span(file.data(), file.size())));
    return {memory_, std::min<int64_t>(info.width * info.height, kMaxServedPixels) * kBytesOfPixel};
  }

  std::vector<EncodedRow> encoded_;
  std::vector<RowAnswer> answers_;  // once it was run

 private:
  std::shared_ptr<const ServedModel> model_;
  Answer answer_;
  double deadline_;
  loader::DecodeMemory& memory_;
};

enum class Form { record, picture };

// POST /predict
class AskedImage final : public Asked {
 public:
  AskedImage(std::shared_ptr<const ServedModel> model, Answer answer, double deadline, loader::DecodeMemory& memory,
             std::string file, int64_t top, Form form)
      : Asked(std::move(model), std::move(answer), deadline, memory), file_(std::move(file)), top_(top), form_(form) {}

  int64_t top() const override { return top_; }
  void prepare() override {
    const loader::DecodeMemory::Held room = room_for(file_);
    encoded_.push_back(model().encode_image(file_));
    if (form_ == Form::picture) {
      picture_ = image::decode_image(std::as_bytes(std::span(file_.data(), file_.size())));
      shrink();
    }
    file_.clear();
  }
  void finish() override {
    Json& record = answers_.at(0).record;
    if (form_ == Form::picture) {
      model().task().draw(record, picture_);
      return give({200, {{"Content-Type", "image/jpeg"}}, image::encode_jpeg(picture_, kPictureQuality)});
    }
    record["model"] = model().name();
    record["version"] = model().version();
    give(web::json_response(record));
  }

 private:
  void shrink() {
    const int64_t longer = std::max(picture_.width, picture_.height);
    if (longer <= kPictureSize) return;
    const auto scaled = [&](int64_t size) { return std::max<int64_t>(1, size * kPictureSize / longer); };
    picture_ = image::resize_image(picture_, scaled(picture_.width), scaled(picture_.height));
  }

  std::string file_;
  int64_t top_;
  Form form_;
  image::Image picture_;
};

// POST /v2/models/NAME/infer
class AskedTensors final : public Asked {
 public:
  AskedTensors(std::shared_ptr<const ServedModel> model, Answer answer, double deadline, loader::DecodeMemory& memory,
               InferRequest request, int64_t top)
      : Asked(std::move(model), std::move(answer), deadline, memory), request_(std::move(request)), top_(top) {
    check();
  }

  int64_t rows() const override { return input().shape.at(0); }
  bool are_numbers() const override { return input().datatype == "FP32"; }
  int64_t top() const override { return top_; }
  void prepare() override {
    InferTensor& tensor = request_.inputs.front();
    for (const auto& file : tensor.words) {
      const loader::DecodeMemory::Held room = room_for(file);
      encoded_.push_back(model().encode_image(file));
    }
    if (are_numbers()) {
      const size_t size = tensor.numbers.size() / static_cast<size_t>(rows());
      for (int64_t i = 0; i < rows(); ++i) {
        encoded_.push_back(
            model().encode_numbers(std::span(tensor.numbers).subspan(static_cast<size_t>(i) * size, size)));
      }
    }
    tensor.words.clear();
    tensor.numbers.clear();
  }
  void finish() override {
    give(write_infer(request_, {model().name(), model().version(), model().output_tensors(answers_, request_)}));
  }

 private:
  const InferTensor& input() const { return request_.inputs.front(); }

  void check() const {
    if (request_.inputs.size() != 1 || input().name != "image") {
      throw Error(Blame::user, "one input is expected, 'image'");
    }
    std::vector<int64_t> wanted;
    if (are_numbers()) {
      if (!model().takes_numbers()) throw Error(Blame::user, "this model takes images as BYTES");
      wanted = model().image_shape();
    }
    const auto& shape = input().shape;
    if (shape.empty() || shape[0] < 1 || !std::equal(shape.begin() + 1, shape.end(), wanted.begin(), wanted.end())) {
      std::string words = "[rows";
      for (const int64_t size : wanted) words += text(", ", size);
      throw Error(Blame::user, text("input 'image': a shape ", words, "] is expected"));
    }
  }

  InferRequest request_;
  int64_t top_;
};

double resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (!file) return 0;
  long size = 0;
  long resident = 0;
  const int got = std::fscanf(file, "%ld %ld", &size, &resident);
  std::fclose(file);
  return got == 2 ? static_cast<double>(resident) * 4096 : 0;
}

// Names of what is asked for, few enough for labels.
std::string route_of(const std::string& path) {
  for (const char* plain : {"/", "/predict", "/metrics"}) {
    if (path == plain) return plain;
  }
  if (path.starts_with("/v2")) return path.ends_with("/infer") ? "/v2/infer" : "/v2";
  return "other";
}

Json named(std::initializer_list<std::pair<const char*, Json>> members) {
  Json all = Json::object();
  for (const auto& [key, value] : members) all[key] = value;
  return all;
}

}  // namespace

class Service::Inside {
 public:
  Inside(ModelSlot& slot, const ServiceOptions& options)
      : slot_(slot), options_(options), batcher_(options.batching, [](const auto& batch) { run(batch); }) {}

  void handle(Request&& request, const Answer& answer) {
    const std::string& path = request.path;
    if (path == "/predict") return predict(std::move(request), answer);
    if (path == "/v2" || path.starts_with("/v2/")) return protocol(std::move(request), answer);
    if (path == "/metrics" && reads(request, answer)) return answer(metrics());
    if (path == "/" && reads(request, answer)) return answer(page());
    if (path != "/" && path != "/metrics") answer(web::error_response(404, "there is nothing of that name here"));
  }

  void count(const web::Access& access) {
    const std::lock_guard lock(mutex_);
    ++requests_[{route_of(access.path), access.status}];
    seconds_[route_of(access.path)].add(access.seconds);
  }

  void drain() { is_draining_ = true; }

 private:
  // False: the method is another one, and that was the answer.
  static bool takes(const Request& request, const Answer& answer, bool is_taken, const char* allowed) {
    if (is_taken) return true;
    Response response = web::error_response(405, text(request.path, " takes ", allowed));
    response.set("Allow", allowed);
    answer(std::move(response));
    return false;
  }
  static bool reads(const Request& request, const Answer& answer) {
    return takes(request, answer, request.method == "GET" || request.method == "HEAD", "GET, HEAD");
  }
  static bool posts(const Request& request, const Answer& answer) {
    return takes(request, answer, request.method == "POST", "POST");
  }

  static void run(const std::vector<std::shared_ptr<Work>>& batch) {
    std::vector<RowToRun> rows;
    rows.reserve(batch.size());
    for (const auto& work : batch) {
      const auto& asked = static_cast<const Asked&>(*work);
      for (const auto& row : asked.encoded()) rows.push_back({&row, asked.top()});
    }
    const auto& first = static_cast<const Asked&>(*batch.front());
    std::vector<RowAnswer> answers = first.model().run(rows, first.are_numbers());
    auto next = answers.begin();
    for (const auto& work : batch) {
      auto& asked = static_cast<Asked&>(*work);
      const auto end = next + asked.rows();
      asked.keep({std::make_move_iterator(next), std::make_move_iterator(end)});
      next = end;
    }
  }

  void submit(std::shared_ptr<Asked> asked) {
    if (asked->rows() > options_.batching.max_rows) {
      return asked->give(web::error_response(400, text("at most ", options_.batching.max_rows, " rows in a request")));
    }
    const auto kept = asked;
    if (!batcher_.submit(std::move(asked))) kept->give(too_busy());
  }

  double deadline() const { return base::steady_seconds() + std::chrono::duration<double>(options_.patience).count(); }

  int64_t top_in(const Request& request) const {
    const std::string* given = request.parameter("top");
    if (!given) return options_.top;
    int64_t top = 0;
    const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), top);
    if (error != std::errc() || end != given->data() + given->size() || top < 1 || top > kMaxTop) {
      throw Error(Blame::user, text("top: a number from 1 to ", kMaxTop, " is expected"));
    }
    return top;
  }

  void predict(Request&& request, const Answer& answer) {
    if (!posts(request, answer)) return;
    const std::string* type = request.header("Content-Type");
    if (type && type->starts_with("multipart/")) {
      return answer(
          web::error_response(415, "the image itself is expected as the body: curl --data-binary @image.jpg"));
    }
    if (request.body.empty()) return answer(web::error_response(400, "no image came"));
    const std::string* accept = request.header("Accept");
    const Form form = accept && accept->starts_with("image/jpeg") ? Form::picture : Form::record;
    const int64_t top = top_in(request);
    submit(
        std::make_shared<AskedImage>(slot_.current(), answer, deadline(), memory_, std::move(request.body), top, form));
  }

  // Under /v2. Models and versions are compared with the one that is served, never looked up anywhere.
  void protocol(Request&& request, const Answer& answer) {
    const auto words = base::split(std::string_view(request.path).substr(1), '/');
    const auto is = [&](std::initializer_list<const char*> path) {
      return std::equal(words.begin(), words.end(), path.begin(), path.end());
    };
    if (is({"v2", "health", "live"})) {
      if (reads(request, answer)) answer(web::json_response(named({{"live", true}})));
    } else if (is({"v2", "health", "ready"})) {
      if (reads(request, answer)) answer(ready(named({{"ready", !is_draining_}})));
    } else if (is({"v2"})) {
      if (reads(request, answer)) answer(web::json_response(about()));
    } else if (words.size() >= 3 && words[1] == "models") {
      of_model(std::move(request), words, answer);
    } else {
      answer(web::error_response(404, "there is nothing of that name here"));
    }
  }

  Response ready(const Json& said) const { return web::json_response(said, is_draining_ ? 503 : 200); }

  static Json about() {
    return named({{"name", "lockstep"},
                  {"version", LOCKSTEP_VERSION},
                  {"extensions", Json::array({Json("binary_tensor_data")})}});
  }

  void of_model(Request&& request, const std::vector<std::string>& words, const Answer& answer) {
    auto model = slot_.current();
    if (words[2] != model->name()) {
      return answer(web::error_response(404, text("unknown model; '", model->name(), "' is served here")));
    }
    size_t next = 3;
    if (words.size() >= 5 && words[3] == "versions") {
      if (words[4] != model->version()) return answer(web::error_response(404, "this version is not served now"));
      next = 5;
    }
    const std::string rest = words.size() == next ? "" : words.size() == next + 1 ? words[next] : "?";
    if (rest.empty()) {
      if (reads(request, answer)) answer(web::json_response(model->metadata()));
    } else if (rest == "ready") {
      if (reads(request, answer)) answer(ready(named({{"name", model->name()}, {"ready", !is_draining_}})));
    } else if (rest == "infer") {
      if (!posts(request, answer)) return;
      const int64_t top = top_in(request);
      submit(std::make_shared<AskedTensors>(std::move(model), answer, deadline(), memory_, read_infer(request), top));
    } else {
      answer(web::error_response(404, "there is nothing of that name here"));
    }
  }

  Response page() const {
    Json data = slot_.current()->description();
    data["lockstep"] = LOCKSTEP_VERSION;
    return web::page_response(web::render_page("serve", slot_.current()->name(), data));
  }

  Response metrics() const {
    Exposition all;
    const BatcherCounts counts = batcher_.counts();
    const auto plain = [&](const char* name, const char* type, const char* help, double value) {
      all.family(name, type, help);
      all.sample(name, value);
    };
    {
      const std::lock_guard lock(mutex_);
      all.family("lockstep_requests_total", "counter", "Requests that were answered, by what they asked for.");
      for (const auto& [key, number] : requests_) {
        all.sample("lockstep_requests_total", static_cast<double>(number),
                   {{"route", key.first}, {"status", std::to_string(key.second)}});
      }
      all.family("lockstep_request_seconds", "histogram",
                 "From the end of the request's head to the end of its answer.");
      for (const auto& [route, seconds] : seconds_) seconds.show(all, "lockstep_request_seconds", {{"route", route}});
    }
    plain("lockstep_queue", "gauge", "Requests accepted and not answered.", static_cast<double>(counts.under_way));
    plain("lockstep_queue_limit", "gauge", "The most of them.", static_cast<double>(options_.batching.max_works));
    plain("lockstep_refused_total", "counter", "Requests refused with 429.", static_cast<double>(counts.refused));
    plain("lockstep_batches_total", "counter", "Passes of the network.", static_cast<double>(counts.batches));
    plain("lockstep_rows_total", "counter", "Images in them.", static_cast<double>(counts.rows));
    plain("lockstep_network_seconds_total", "counter", "Time in them.", counts.run_seconds);
    plain("lockstep_reloads_total", "counter", "Models replaced while serving.", static_cast<double>(slot_.reloads()));
    plain("lockstep_reload_failures_total", "counter", "Models that could not be loaded.",
          static_cast<double>(slot_.failures()));
    plain("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.", resident_bytes());
    const auto model = slot_.current();
    all.family("lockstep_model_info", "gauge", "The model that is served now.");
    all.sample("lockstep_model_info", 1, {{"name", model->name()}, {"version", model->version()}});
    return {200, {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}}, all.text()};
  }

  ModelSlot& slot_;
  const ServiceOptions options_;
  std::atomic<bool> is_draining_ = false;
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;
  std::map<std::string, SecondsHistogram> seconds_;
  loader::DecodeMemory memory_{kDecodedAtOnce};
  Batcher batcher_;  // the last member: it ends first
};

Service::Service(ModelSlot& slot, const ServiceOptions& options) : inside_(std::make_unique<Inside>(slot, options)) {}
Service::~Service() = default;

void Service::handle(Request&& request, const Answer& answer) {
  inside_->handle(std::move(request), answer);
}
void Service::count(const web::Access& access) {
  inside_->count(access);
}
void Service::drain() {
  inside_->drain();
}

}  // namespace lockstep::serving
