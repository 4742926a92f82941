// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/report/live.h"

#include <charconv>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/watching/live.h"
#include "lockstep/web/page.h"

namespace lockstep::verbs::report {
namespace {

constexpr double kBetweenPolls = 0.5;  // seconds: many pages do not make many reads of the folder

int64_t integer_in(const web::Request& request, const char* name, int64_t otherwise) {
  const std::string* words = request.parameter(name);
  int64_t value = 0;
  if (!words) return otherwise;
  const auto read = std::from_chars(words->data(), words->data() + words->size(), value);
  return read.ec == std::errc() && read.ptr == words->data() + words->size() ? value : otherwise;
}

}  // namespace

web::Handler live_handler(std::shared_ptr<watching::RunWatch> watch) {
  auto polled = std::make_shared<double>(-kBetweenPolls);
  return [watch = std::move(watch), polled = std::move(polled)](web::Request&& request, const web::Answer& answer) {
    const bool page = request.path == "/", news = request.path == "/run.json";
    if (!page && !news) return answer(web::error_response(404, "there is / and /run.json"));
    if (base::steady_seconds() - *polled >= kBetweenPolls) {
      try {
        watch->poll();
      } catch (const base::Error& error) {  // the folder does not answer now: the page says so and asks again
        return answer(web::error_response(503, error.what()));
      }
      *polled = base::steady_seconds();
    }
    const watching::Cursor since{integer_in(request, "voids", -1), integer_in(request, "steps", 0),
                                 integer_in(request, "evaluations", 0)};
    const base::Json json = live_json(*watch, page ? watching::Cursor{} : since, base::unix_seconds());
    answer(page ? web::page_response(web::render_page("live", json.at("name").as_string(), json))
                : web::json_response(json));
  };
}

std::string live_words(const std::string& host, int port, const std::string& token) {
  return base::text("http://127.0.0.1:", port, "/?token=", token, "\n", "from your own machine: ssh -L ", port,
                    ":127.0.0.1:", port, " ", host, "   and open the same address there\n",
                    "read-only; whoever has the address sees the run; Ctrl-C ends it\n");
}

}  // namespace lockstep::verbs::report
