// SPDX-License-Identifier: Apache-2.0
#include "lockstep/serving/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>

#include "lockstep/base/error.h"
#include "lockstep/serving/small_model.h"

namespace lockstep::serving {
namespace {

using testing::HasSubstr;
using web::Request;
using web::Response;

struct Served {
  std::string version = "1";
  Pass pass = {};
  ModelSlot slot;
  Service service;

  explicit Served(const ServiceOptions& options = {}, Pass with = {})
      : pass(std::move(with)),
        slot({[this] { return version; }, [this] { return small_model(version, pass); }}, std::chrono::milliseconds(0),
             [](const std::string&) {}),
        service(slot, options) {}

  std::future<Response> ask(Request request) {
    const auto promise = std::make_shared<std::promise<Response>>();
    try {
      service.handle(std::move(request), [promise](Response response) { promise->set_value(std::move(response)); });
    } catch (const base::Error& error) {  // as the server does
      promise->set_value(web::error_response(error.blame() == base::Blame::user ? 400 : 500, error.what()));
    }
    return promise->get_future();
  }
  Response get(const std::string& path) { return ask({"GET", path}).get(); }
  Response post(const std::string& path, std::string body, std::vector<web::NamedValue> headers = {}) {
    return ask({"POST", path, {}, std::move(headers), std::move(body)}).get();
  }
};

std::string infer_json(const std::string& shape, const std::string& data, const std::string& type = "FP32") {
  return R"({"id": "a", "inputs": [{"name": "image", "shape": )" + shape + R"(, "datatype": ")" + type +
         R"(", "data": )" + data + "}]}";
}

std::string pixels(int rows, const char* value) {
  std::string all = "[";
  for (int i = 0; i < rows * 48; ++i) all += std::string(i == 0 ? "" : ",") + value;
  return all + "]";
}

TEST(ServiceTest, PredictsAnImage) {
  Served served;
  const Response response = served.post("/predict", grey_image(250));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            "{\"classes\":[{\"name\":\"bright\",\"probability\":0.75},{\"name\":\"dark\",\"probability\":0.25}],"
            "\"model\":\"small\",\"version\":\"1\"}\n");
  const Response one = served.ask({"POST", "/predict", {{"top", "1"}}, {}, grey_image(5)}).get();
  EXPECT_EQ(base::parse_json(one.body, "answer").at("classes").size(), 1U);
  const Response picture = served.post("/predict", grey_image(250), {{"Accept", "image/jpeg"}});
  EXPECT_TRUE(picture.body.starts_with("\xff\xd8"));
}

TEST(ServiceTest, SpeaksTheProtocol) {
  Served served;
  EXPECT_EQ(served.get("/v2/health/live").body, "{\"live\":true}\n");
  EXPECT_EQ(served.get("/v2/health/ready").body, "{\"ready\":true}\n");
  EXPECT_THAT(served.get("/v2").body, HasSubstr("binary_tensor_data"));
  EXPECT_THAT(served.get("/v2/models/small").body, HasSubstr("[-1,3,4,4]"));
  EXPECT_EQ(served.get("/v2/models/small/versions/1/ready").status, 200);
  const Response response =
      served.post("/v2/models/small/versions/1/infer", infer_json("[2, 3, 4, 4]", pixels(2, "1")));
  const auto said = base::parse_json(response.body, "answer");
  EXPECT_EQ(said.at("id").as_string(), "a");
  EXPECT_EQ(said.at("outputs").items()[0].at("shape").dump(-1), "[2,2]");
  EXPECT_EQ(said.at("outputs").items()[0].at("data").items()[3].as_double(), 0.75);
}

TEST(ServiceTest, RefusesBadInputInWords) {
  Served served;
  const auto is = [](const Response& response, int status, const char* words) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_THAT(base::parse_json(response.body, "answer").at("error").as_string(), HasSubstr(words));
  };
  is(served.post("/predict", "GIF89a"), 400, "");
  is(served.post("/predict", ""), 400, "no image");
  is(served.post("/predict", grey_image(1).substr(0, 50)), 400, "");
  is(served.post("/predict", std::string("\x80\x04\x95pickle.", 10)), 400, "");
  is(served.ask({"POST", "/predict", {{"top", "0"}}, {}, grey_image(1)}).get(), 400, "top");
  is(served.post("/predict", "x", {{"Content-Type", "multipart/form-data; boundary=" + std::string(5000, '-')}}), 415,
     "--data-binary");
  is(served.get("/predict"), 405, "POST");
  is(served.post("/metrics", ""), 405, "GET");
  is(served.get("/elsewhere"), 404, "nothing");
  is(served.get("/v2/models/other"), 404, "unknown model");
  is(served.get("/v2/models/file:etc"), 404, "unknown model");
  is(served.get("/v2/models/small/versions/9"), 404, "version");
  is(served.get("/v2/models/small/config"), 404, "nothing");
  is(served.get("/v2/models/small/infer"), 405, "POST");
  const char* infer = "/v2/models/small/infer";
  is(served.post(infer, "{"), 400, "request:1:2");
  is(served.post(infer, infer_json("[1, 3, 4, 5]", "[1]")), 400, "elements came");
  is(served.post(infer, infer_json("[1, 48]", pixels(1, "1"))), 400, "[rows, 3, 4, 4]");
  is(served.post(infer, infer_json("[0, 3, 4, 4]", "[]")), 400, "[rows, 3, 4, 4]");
  is(served.post(infer, infer_json("[1]", "[\"no image\"]", "BYTES")), 400, "");
  is(served.post(infer, infer_json("[1]", "[1]", "INT8")), 400, "INT8");
  is(served.post(infer, R"({"inputs": []})"), 400, "one input");
  is(served.post(infer, infer_json("[17, 3, 4, 4]", pixels(17, "1"))), 400, "at most 16 rows");
}

TEST(ServiceTest, RefusesWithoutWaitingWhenItIsFull) {
  std::latch entered(2);  // the pass over a blank row is the first
  std::latch go(1);
  std::atomic<int> passes = 0;
  const Pass pass = [&](const loader::Batch& batch) {
    if (passes++ == 1) {
      entered.count_down(2);
      go.wait();
    }
    return std::vector<OutputRows>{
        {"probabilities", 2, std::vector<float>(static_cast<size_t>(2 * batch.size()), 0.5F)}};
  };
  Served served({.batching = {.max_works = 2}}, pass);
  auto first = served.ask({"POST", "/predict", {}, {}, grey_image(1)});
  entered.wait();
  auto second = served.ask({"POST", "/predict", {}, {}, grey_image(1)});
  const Response third = served.post("/predict", grey_image(1));
  EXPECT_EQ(third.status, 429);
  EXPECT_EQ(*web::find_value(third.headers, "Retry-After"), "1");
  go.count_down();
  EXPECT_EQ(first.get().status, 200);
  EXPECT_EQ(second.get().status, 200);
}

TEST(ServiceTest, AModelMayBeReplacedWhileItServes) {
  std::latch entered(1);
  std::latch go(1);
  std::atomic<int> passes = 0;
  const Pass pass = [&](const loader::Batch& batch) {
    if (passes++ == 1) {
      entered.count_down();
      go.wait();
    }
    return std::vector<OutputRows>{
        {"probabilities", 2, std::vector<float>(static_cast<size_t>(2 * batch.size()), 0.5F)}};
  };
  Served served({}, pass);
  auto old = served.ask({"POST", "/predict", {}, {}, grey_image(1)});
  entered.wait();
  served.version = "2";
  served.slot.look_now();
  auto fresh = served.ask({"POST", "/predict", {}, {}, grey_image(1)});
  go.count_down();
  EXPECT_THAT(old.get().body, HasSubstr("\"version\":\"1\""));
  EXPECT_THAT(fresh.get().body, HasSubstr("\"version\":\"2\""));
  EXPECT_THAT(served.get("/metrics").body, HasSubstr("lockstep_reloads_total 1\n"));
}

TEST(ServiceTest, AFailureOfOursKeepsItsWordsToItself) {
  std::atomic<int> passes = 0;
  Served served({}, [&](const loader::Batch&) {
    if (passes++ > 0) throw std::runtime_error("/dev/shm/secret");
    return std::vector<OutputRows>{{"probabilities", 2, {0, 1}}};
  });
  const Response response = served.post("/predict", grey_image(1));
  EXPECT_EQ(response.status, 500);
  EXPECT_EQ(response.body.find("secret"), std::string::npos);
}

TEST(ServiceTest, WorkThatIsTooLateIsNotRun) {
  Served served({.patience = std::chrono::milliseconds(-1)});
  EXPECT_EQ(served.post("/predict", grey_image(1)).status, 504);
}

TEST(ServiceTest, CountsForPrometheus) {
  Served served;
  served.post("/predict", grey_image(1));
  served.service.count({"", "POST", "/predict", 200, 10, 20, 0.003});
  served.service.count({"", "GET", "/../etc\"\n", 400, 0, 0, 0.001});
  const Response response = served.get("/metrics");
  EXPECT_EQ(*web::find_value(response.headers, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(response.body, HasSubstr("lockstep_requests_total{route=\"/predict\",status=\"200\"} 1\n"));
  EXPECT_THAT(response.body, HasSubstr("lockstep_requests_total{route=\"other\",status=\"400\"} 1\n"));
  EXPECT_THAT(response.body, HasSubstr("lockstep_request_seconds_bucket{route=\"/predict\",le=\"0.005\"} 1\n"));
  EXPECT_THAT(response.body, HasSubstr("lockstep_rows_total 1\n"));
}

TEST(ServiceTest, NobodyIsSentToAServerThatEnds) {
  Served served;
  served.service.drain();
  EXPECT_EQ(served.get("/v2/health/ready").status, 503);
  EXPECT_EQ(served.get("/v2/health/live").status, 200);
  EXPECT_EQ(served.get("/v2/models/small/ready").status, 503);
}

TEST(ServiceTest, HasAPageForPeople) {
  Served served;
  const Response response = served.get("/");
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(response.body, HasSubstr("<title>small - lockstep serve</title>"));
}

}  // namespace
}  // namespace lockstep::serving
