// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "lockstep/base/arguments.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/shell.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"
#include "lockstep/run/stop.h"
#include "lockstep/site/cores.h"
#include "lockstep/step/device.h"
#include "lockstep/verbs/serve/serve.h"
#include "lockstep/verbs/verb.h"
#include "lockstep/web/http/token.h"

namespace lockstep::verbs::serve {
namespace {

using base::Blame;
using base::Error;
using base::text;
using std::chrono::milliseconds;

const base::CommandLine& serve_line() {
  static const base::CommandLine line{
      "serve",
      "RUN | NAME[:TAG]",
      "answer requests with a trained network: an image in, what it sees out; by HTTP, with a page for people",
      {{"--port", "N", "to listen on (default 8000; 0: any that is free)"},
       {"--address", "A", "to listen on (default 127.0.0.1, this machine alone)"},
       {"--device", "NAME", "cpu (default) or cuda"},
       {"--store", "DIR", "serve NAME:TAG of this store, and whatever the tag points to from then on"},
       {"--name", "NAME", "of the model in addresses, /v2/models/NAME (default: the job's)"},
       {"--weights", "WHICH", "of a run: best (default where it has validation), last, or a step with a checkpoint"},
       {"--job", "JOB", "for weights outside a run folder"},
       {"--set", "KEY=VALUE", "override a key of the job"},
       {"--precision", "NAME", "fp32, or bf16: twice as fast on processors that have it (default: the job's)"},
       {"--top", "N", "of a classifier: classes per image, most probable first (default 5)"},
       {"--batch", "N", "images of a pass at most (default 16)"},
       {"--budget", "TIME", "the longest that an image waits for others to share a pass (default '2 ms')"},
       {"--queue", "N", "requests under way at most, more get 429 (default 64)"},
       {"--body", "SIZE", "of a request at most (default '64 MiB')"},
       {"--reload", "TIME", "how often to look for other weights (default '2 s'; none: never)"},
       {"--for", "TIME", "end after that time (default: on Ctrl-C or SIGTERM)"},
       {"--drain", "TIME", "for requests under way at the end (default '20 s')"},
       {"--token-file", "FILE", "with the token that is asked for; made where there is none (default: see below)"},
       {"--no-token", "", "let everybody on this machine ask"},
       {"--host", "NAME", "by which others call this machine, besides localhost; may be given several times"},
       {"--certificate", "FILE", "PEM, with --key: speak TLS"},
       {"--key", "FILE", "PEM, of the certificate"},
       {"--log", "FILE", "append a line of JSON for each request (- = standard output)"}},
      "Ends on Ctrl-C or SIGTERM, after the requests under way. Every user of a machine reaches its ports: hence the\n"
      "token, in $XDG_STATE_HOME/lockstep/token or ~/.local/state/lockstep/token. Addresses and formats: "
      "docs/serve.md\n"
      "examples: lockstep serve runs/pets\n"
      "          lockstep serve pets:production --store /shared/store\n"
      "          curl -H \"Authorization: Bearer $(cat ~/.local/state/lockstep/token)\" --data-binary @cat.jpg \\\n"
      "            http://127.0.0.1:8000/predict\n"
      "          lockstep serve quickstart/run --port 0 --token-file quickstart/token --for '1 s'"};
  return line;
}

base::Path state_folder() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state == '/') return base::Path(state) / "lockstep";
  const char* home = std::getenv("HOME");
  if (!home || *home != '/') {
    throw Error(Blame::user, "neither XDG_STATE_HOME nor HOME says where the token may lie", "name a --token-file");
  }
  return base::Path(home) / ".local/state/lockstep";
}

base::Path token_file(const base::Arguments& arguments) {
  if (const auto given = arguments.value("--token-file")) return *given;
  const base::Path folder = state_folder();
  base::make_folders(folder);
  return folder / "token";
}

milliseconds duration_or(const base::Arguments& arguments, const char* option, milliseconds otherwise) {
  const auto given = arguments.value(option);
  if (!given) return otherwise;
  try {
    return milliseconds(std::llround(base::parse_duration(*given) * 1000));
  } catch (const Error& error) {
    throw Error(Blame::user, text(option, " ", *given, ": ", error.what()), error.fix());
  }
}

int64_t positive_or(const base::Arguments& arguments, const char* option, int64_t otherwise) {
  const int64_t given = arguments.int_or(option, otherwise);
  if (given < 1) throw Error(Blame::user, text(option, " must be at least 1"));
  return given;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

web::Gate gate_from(const base::Arguments& arguments, const std::string& address) {
  web::Gate gate;
  gate.hosts = arguments.values("--host");
  if (!is_loopback(address))
    gate.hosts.push_back(address.find(':') == std::string::npos ? address : "[" + address + "]");
  if (!arguments.has("--no-token")) {
    gate.token = web::token_in(token_file(arguments));
  } else if (!is_loopback(address)) {
    throw Error(Blame::user, text("--no-token with --address ", address, ": everybody on the network could ask"),
                "leave one of the two out");
  }
  return gate;
}

web::ServerOptions server_from(const base::Arguments& arguments) {
  web::ServerOptions server;
  server.address = arguments.value_or("--address", "127.0.0.1");
  server.port = static_cast<int>(arguments.int_or("--port", 8000));
  if (arguments.int_or("--port", 8000) < 0 || server.port > 65535) throw Error(Blame::user, "--port: 0 to 65535");
  server.certificate = arguments.value_or("--certificate", "");
  server.key = arguments.value_or("--key", "");
  if (server.certificate.empty() != server.key.empty()) {
    throw Error(Blame::user, "--certificate and --key belong together");
  }
  if (const auto body = arguments.value("--body")) server.max_body = base::parse_bytes(*body);
  server.max_bodies = std::max(server.max_bodies, 2 * server.max_body);
  server.gate = gate_from(arguments, server.address);
  if (!is_loopback(server.address) && server.certificate.empty()) {
    std::fprintf(stderr, "warning: without --certificate the token and the images cross the network unencrypted\n");
  }
  return server;
}

serving::ServiceOptions service_from(const base::Arguments& arguments) {
  serving::ServiceOptions service;
  service.top = positive_or(arguments, "--top", 5);
  service.batching.max_rows = positive_or(arguments, "--batch", 16);
  service.batching.max_works = positive_or(arguments, "--queue", 64);
  service.batching.budget = duration_or(arguments, "--budget", milliseconds(2));
  service.batching.threads = site::cores_per_rank();
  return service;
}

std::string access_line(const web::Access& access) {
  base::Json line = base::Json::object();
  line["t"] = base::unix_seconds();
  line["remote"] = access.remote;
  line["method"] = access.method;
  line["path"] = access.path;
  line["status"] = access.status;
  line["received"] = access.received;
  line["sent"] = access.sent;
  line["seconds"] = access.seconds;
  return line.dump(-1) + "\n";
}

// A line of each request, in a file or (-) on standard output. A disk that is full must not end the service: it is said
// once, until a line can be written again.
class AccessLog {
 public:
  explicit AccessLog(const std::string& file) {
    if (file != "-") file_ = std::make_unique<base::FileWriter>(file, base::FileWriter::Mode::append);
  }

  void add(const web::Access& access) {
    try {
      write(access_line(access));
    } catch (const Error& error) {
      if (num_missing_++ == 0) std::fprintf(stderr, "the access log is not written: %s\n", error.what());
      return;
    }
    if (num_missing_ == 0) return;
    std::fprintf(stderr, "the access log is written again; requests that are missing: %lld\n",
                 static_cast<long long>(num_missing_));
    num_missing_ = 0;
  }

 private:
  void write(const std::string& line) const {
    if (file_) return file_->write_whole(line);
    if (std::fputs(line.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return;
    const int code = errno;
    std::clearerr(stdout);
    throw Error(Blame::machine, text("standard output: ", std::strerror(code)));
  }

  std::unique_ptr<base::FileWriter> file_;  // none: standard output
  int64_t num_missing_ = 0;
};

// A core file, or a program that somebody starts through us, would have the token.
void harden() {
  ::umask(077);
  const struct rlimit none {};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void tell_start(const web::Server& server, const serving::ServedModel& model, const base::Arguments& arguments,
                const std::string& token) {
  std::printf("%s, version %s%s%s\n", model.name().c_str(), model.version().c_str(), model.which().empty() ? "" : ": ",
              model.which().c_str());
  if (token.empty()) {
    std::printf("serving at %s/\n", server.url().c_str());
  } else if (::isatty(STDOUT_FILENO) != 0) {
    std::printf("serving at %s/?token=%s\n", server.url().c_str(), token.c_str());
  } else {  // what is written to a file may be read by others
    std::printf("serving at %s/, the token is in %s\n", server.url().c_str(),
                base::shell_path(token_file(arguments).string()).c_str());
  }
  std::fflush(stdout);
}

int serve_command(const base::Arguments& arguments) {
  harden();
  ServeOptions options;
  options.server = server_from(arguments);
  options.service = service_from(arguments);
  options.look_every = duration_or(arguments, "--reload", milliseconds(2000));
  options.drain = duration_or(arguments, "--drain", milliseconds(20000));
  std::optional<AccessLog> log;
  if (const auto file = arguments.value("--log")) {
    log.emplace(*file);
    options.server.log = [&log](const web::Access& access) { log->add(access); };
  }
  options.say = [](const std::string& words) { std::fprintf(stderr, "%s\n", words.c_str()); };
  const std::string& source = arguments.only("a run folder, or a name of a store");
  const auto store = arguments.value("--store");
  std::vector<std::string> sets = arguments.values("--set");
  if (const auto precision = arguments.value("--precision")) sets.push_back(text("training.precision=", *precision));
  options.device = step::open_device(arguments.value_or("--device", "cpu"), 0);
  const training::TrainedOptions trained{store ? base::Path(*store) / source : base::Path(source),
                                         arguments.value_or("--job", ""), std::move(sets), options.device,
                                         arguments.value_or("--weights", "")};
  options.source = model_source(trained, arguments.value_or("--name", ""));
  options.started = [&](const web::Server& server, const serving::ServedModel& model) {
    tell_start(server, model, arguments, options.server.gate.token);
  };
  const run::StopSignals signals;
  const milliseconds length = duration_or(arguments, "--for", milliseconds(0));
  const double start = base::steady_seconds();
  options.stop = [&] {
    const bool is_over =
        length.count() > 0 && base::steady_seconds() - start > std::chrono::duration<double>(length).count();
    return is_over || signals.received() != 0;
  };
  serve(options);
  std::printf("ended after %s\n",
              signals.received() != 0 ? signals.name().c_str() : arguments.value_or("--for", "").c_str());
  return 0;
}

}  // namespace

LOCKSTEP_VERB(serve)(const std::vector<std::string>& words) {
  const base::Arguments arguments = base::parse_arguments(serve_line(), words);
  if (arguments.has("--help")) return std::fputs(base::help_text(serve_line()).c_str(), stdout), 0;
  return serve_command(arguments);
}

}  // namespace lockstep::verbs::serve
