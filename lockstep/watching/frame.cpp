// SPDX-License-Identifier: Apache-2.0
#include "lockstep/watching/frame.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/console.h"
#include "lockstep/base/progress.h"
#include "lockstep/base/table.h"
#include "lockstep/base/text.h"
#include "lockstep/base/units.h"

namespace lockstep::watching {
namespace {

using base::fixed;
using base::Json;
using base::percent;
using base::text;

enum class Style { plain, strong, quiet, good, bad, curve };

// ANSI's own colours, which follow the terminal's theme; what they say stands there in words too.
const char* code_of(Style style) {
  constexpr const char* kCodes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[1;33m", "\x1b[36m"};
  return kCodes[static_cast<size_t>(style)];
}

struct Span {
  std::string text;
  Style style = Style::plain;
};

struct Line {
  std::vector<Span> spans;
  int worth = 0;  // the lowest go first where there are too many lines
};

int length_of(std::string_view text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string cut(std::string_view text, int width) {
  int points = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) == 0x80) continue;
    if (++points > width) return std::string(text.substr(0, i));
  }
  return std::string(text);
}

std::string one_line(std::string_view text) {
  std::string line = base::harmless(text);
  for (char& c : line) {
    if (c == '\n' || c == '\t') c = ' ';
  }
  return line;
}

std::string render(const Line& line, const FrameOptions& options) {
  std::string all;
  int left = options.width;
  for (const auto& span : line.spans) {
    const std::string shown = cut(one_line(span.text), left);
    left -= length_of(shown);
    if (options.colors && span.style != Style::plain && !shown.empty()) {
      all += text(code_of(span.style), shown, "\x1b[0m");
    } else {
      all += shown;
    }
  }
  while (!options.colors && all.ends_with(' ')) all.pop_back();
  return all + "\n";
}

// The words in lines of at most `width`, the later ones below the first.
std::vector<std::string> wrap(const std::string& words, int width) {
  std::vector<std::string> lines{""};
  for (const auto& word : base::split(words, ' ')) {
    if (!lines.back().empty() && length_of(lines.back()) + 1 + length_of(word) > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

Style style_of(Status status) {
  if (status == Status::finished || status == Status::running) return Style::good;
  return status == Status::broke_off || status == Status::gone || status == Status::stopped ? Style::bad
                                                                                            : Style::strong;
}

std::string score_text(const Snapshot& run, double value) {
  return run.score_is_share ? percent(value, 1) : fixed(value, 4);
}

std::string quantity(double value, const std::string& unit) {
  if (unit == "B") return base::format_bytes(value);
  return unit == "1/s" ? text(fixed(value, 1), "/s") : base::format_duration(value);
}

constexpr int kLabel = 9;  // columns in front of what a line tells

Span label(const std::string& word) {
  return {word + std::string(static_cast<size_t>(std::max(1, kLabel - length_of(word))), ' '), Style::quiet};
}

class Frame {
 public:
  Frame(const FrameOptions& options, std::vector<Line>& lines) : options_(options), lines_(lines) {}

  void head(const Snapshot& run) {
    const std::string status = words_for(run.status);
    const int room = options_.width - length_of(status) - 1;
    std::string left = cut(text(run.name, "  ", run.about), room);
    left += std::string(static_cast<size_t>(std::max(0, room - length_of(left)) + 1), ' ');
    const auto name = std::min(left.size(), run.name.size());
    put(100, {{left.substr(0, name), Style::strong}, {left.substr(name)}, {status, style_of(run.status)}});
    if (!run.outcome.empty() && run.outcome != status) {
      put(95, {label(""), {run.outcome, style_of(run.status)}});
    }
  }

  void progress(const Snapshot& run) {
    const double share = run.total_steps > 0 ? static_cast<double>(run.step) / static_cast<double>(run.total_steps) : 0;
    std::string words = text(" ", percent(share, 0), "  step ", base::format_count(run.step));
    if (run.total_steps > 0) words += text("/", base::format_count(run.total_steps));
    if (!std::isnan(run.epoch)) words += text("  epoch ", fixed(run.epoch, 2));
    if (!std::isnan(run.epoch) && !std::isnan(run.epochs)) words += text("/", run.epochs);
    const int bar = std::max(10, options_.width - length_of(words));
    put(99, {{progress_bar(share, bar, options_.letters), Style::curve}, {words}});
    std::vector<std::string> facts;
    if (!std::isnan(run.left)) facts.push_back(text("left ", base::duration_text(run.left)));
    if (run.elapsed > 0) facts.push_back(text("took ", base::duration_text(run.elapsed)));
    if (!std::isnan(run.rate)) facts.push_back(text(fixed(run.rate, 1), " samples/s"));
    if (!std::isnan(run.step_seconds)) facts.push_back(text(base::format_duration(run.step_seconds), " a step"));
    if (!std::isnan(run.memory)) facts.push_back(base::format_bytes(run.memory));
    if (!std::isnan(run.watts)) facts.push_back(text(std::lround(run.watts), " W"));
    if (!facts.empty()) put(98, {{base::join(facts, "   ")}});
    if (!is_over(run.status) && run.silent > 60 && run.silent > 10 * run.step_seconds) {
      put(97, {{text("the journal has not grown for ", base::duration_text(run.silent)), Style::bad}});
    }
  }

  void curve(int worth, const std::string& name, const std::vector<double>& values, const std::string& words) {
    const int room = options_.width - kLabel - length_of(words) - 2;
    const std::string line = sparkline(values, std::min(room, 100), options_.letters);
    if (!line.empty()) put(worth, {label(name), {line, Style::curve}, {text("  ", words)}});
  }

  void curves(const Snapshot& run) {
    if (!std::isnan(run.loss)) curve(90, "loss", run.losses, fixed(run.loss, 4));
    if (!run.scores.empty()) {
      curve(89, cut(run.score_name, kLabel - 1), run.scores,
            text(score_text(run, run.score), "  best ", score_text(run, run.best_score), " at step ",
                 base::format_count(run.best_step)));
    }
    if (!std::isnan(run.rate)) curve(60, "rate", run.rates, text(fixed(run.rate, 1), "/s"));
  }

  void time(const Snapshot& run) {
    const std::pair<const char*, double> parts[] = {
        {"data wait", run.time.data}, {"compute", run.time.compute},       {"communication", run.time.communication},
        {"save", run.time.save},      {"evaluation", run.time.evaluation}, {"cached features", run.time.features},
        {"other", run.time.other}};
    std::vector<std::string> words;
    for (const auto& [name, seconds] : parts) {
      if (seconds > 0.005 * run.elapsed) words.push_back(text(name, " ", percent(seconds / run.elapsed, 0)));
    }
    if (!words.empty()) put(70, {label("time"), {base::join(words, "   ")}});
  }

  void promise(const Snapshot& run) {
    const Json* rows = run.promise.is_object() ? run.promise.find("rows") : nullptr;
    if (!rows || !rows->is_array()) return;
    std::string name = "promise";
    for (const auto& row : rows->items()) {
      const std::string unit = row.string_or("unit", "s"), what = row.string_or("what", "");
      const double deviation = row.double_or("deviation", 0);
      const Json* inside = row.find("inside");
      const bool kept = inside && inside->as_bool();
      const int worth = what == "step" || what == "peak memory" ? 75 : 35;
      put(worth, {label(std::exchange(name, "")),
                  {text(what, " ", quantity(row.double_or("promised", 0), unit), " promised, ",
                        quantity(row.double_or("measured", 0), unit), " measured, ", deviation < 0 ? "" : "+",
                        percent(deviation, 1), " ")},
                  {kept ? "inside" : "OUTSIDE", kept ? Style::good : Style::bad}});
    }
  }

  void slowness(const Snapshot& run, size_t most) {
    std::string name = "slow?";
    int worth = 85;
    for (size_t i = 0; i < std::min(most, run.slowness.findings.size()); ++i) {
      const Finding& finding = run.slowness.findings[i];
      for (const auto& line : wrap(finding.what, options_.width - kLabel)) {
        put(worth--, {label(std::exchange(name, "")), {line}});
      }
      if (finding.advice.empty()) continue;
      for (const auto& line : wrap(finding.advice, options_.width - kLabel - 2)) {
        put(worth--, {label(""), {"  "}, {line, Style::strong}});
      }
    }
  }

  void chain(const Snapshot& run) {
    if (!run.chain) return;
    const ChainView& chain = *run.chain;
    std::string words = text("link ", chain.links.size());
    if (chain.planned_links > 0) words += text(" of ", chain.planned_links, " planned");
    if (chain.waiting > 0) words += text(", ", chain.waiting, " in the queue");
    if (!chain.over.empty()) words += text(", over: ", chain.over);
    put(80, {label("chain"), {words}});
    int worth = 55;
    for (size_t i = chain.links.size(); i > 0 && i + 3 > chain.links.size(); --i) {
      const LinkLine& link = chain.links[i - 1];
      put(worth--, {label(""),
                    {text("job ", link.job, " on ", link.host, ", from step ", base::format_count(link.from_step), ": ",
                          link.state)}});
    }
  }

  void warnings(const Snapshot& run, size_t most) {
    std::string name = "warning";
    const size_t first = run.warnings.size() - std::min(most, run.warnings.size());
    int worth = 79;
    for (size_t i = first; i < run.warnings.size(); ++i) {
      for (const auto& line : wrap(one_line(run.warnings[i]), options_.width - kLabel)) {
        put(worth--, {label(std::exchange(name, "")), {line, Style::bad}});
      }
    }
  }

  // The newest are the last to go.
  void log(const Snapshot& run, size_t most) {
    std::string name = "log";
    const size_t first = run.lines.size() - std::min(most, run.lines.size());
    for (size_t i = first; i < run.lines.size(); ++i) {
      const int age = static_cast<int>(run.lines.size() - i);
      put(54 - age, {label(std::exchange(name, "")), {run.lines[i], Style::quiet}});
    }
  }

  void gap() { put(20, {}); }

 private:
  void put(int worth, std::vector<Span> spans) { lines_.push_back({std::move(spans), worth}); }

  const FrameOptions& options_;
  std::vector<Line>& lines_;
};

void draw_one(const Snapshot& run, const FrameOptions& options, std::vector<Line>& lines) {
  Frame frame(options, lines);
  frame.head(run);
  frame.progress(run);
  frame.gap();
  frame.curves(run);
  frame.time(run);
  frame.gap();
  frame.promise(run);
  frame.slowness(run, 3);
  frame.chain(run);
  frame.warnings(run, 3);
  frame.gap();
  frame.log(run, options.height > 0 ? 30 : 12);
}

void draw_short(const Snapshot& run, const FrameOptions& options, std::vector<Line>& lines) {
  Frame frame(options, lines);
  frame.head(run);
  frame.progress(run);
  frame.curves(run);
  frame.slowness(run, 1);
  frame.warnings(run, 1);
  frame.gap();
}

// What a line is about stands in front of the first of several: the next one inherits it.
void hand_label_on(const Line& line, Line& next) {
  if (line.spans.empty() || next.spans.empty()) return;
  const bool is_free = next.spans[0].style == Style::quiet && next.spans[0].text == label("").text;
  if (is_free && line.spans[0].style == Style::quiet) next.spans[0] = line.spans[0];
}

void leave_out(std::vector<Line>& lines, size_t most) {
  while (lines.size() > most) {
    const auto least =
        std::min_element(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.worth < b.worth; });
    if (least + 1 != lines.end()) hand_label_on(*least, *(least + 1));
    lines.erase(least);
  }
}

}  // namespace

std::string draw_frame(const std::vector<Snapshot>& runs, const FrameOptions& options) {
  std::vector<Line> lines;
  for (const auto& run : runs) {
    if (runs.size() == 1) {
      draw_one(run, options, lines);
    } else {
      draw_short(run, options, lines);
    }
  }
  while (!lines.empty() && lines.back().spans.empty()) lines.pop_back();
  if (options.height > 0) leave_out(lines, static_cast<size_t>(options.height));
  std::string frame;
  for (const auto& line : lines) frame += render(line, options);
  return frame;
}

std::string draw_line(const Snapshot& run) {
  std::string line = text(run.name, "  ", words_for(run.status), "  step ", run.step);
  if (run.total_steps > 0) line += text("/", run.total_steps);
  if (!std::isnan(run.epoch)) line += text("  epoch ", fixed(run.epoch, 2));
  if (!std::isnan(run.loss)) line += text("  loss ", fixed(run.loss, 4));
  if (!run.scores.empty()) line += text("  ", run.score_name, " ", score_text(run, run.score));
  if (!std::isnan(run.rate)) line += text("  ", fixed(run.rate, 1), " samples/s");
  if (!std::isnan(run.left)) line += text("  left ", base::duration_text(run.left));
  return one_line(line);
}

}  // namespace lockstep::watching
