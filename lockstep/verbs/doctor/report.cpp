// SPDX-License-Identifier: Apache-2.0
#include "lockstep/verbs/doctor/report.h"

#include <algorithm>

#include "lockstep/base/text.h"

namespace lockstep::verbs::doctor {
namespace {

const char* sign_of(Mark mark) {
  switch (mark) {
    case Mark::ok:
      return "ok ";
    case Mark::note:
      return " . ";
    case Mark::warn:
      return " ! ";
    case Mark::wrong:
      return "XX ";
  }
  return "   ";
}

// Breaks at blanks so that a line has at most `width` columns; the rest is indented by `indent`.
std::string folded(const std::string& words, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  for (const auto& word : base::split(words, ' ')) {
    const bool breaks = column + 1 + word.size() > width && column > indent;
    if (!out.empty()) out += breaks ? "\n" + std::string(indent, ' ') : " ";
    column = (breaks ? indent : column + 1) + word.size();
    out += word;
  }
  return out;
}

std::string fixes_text(const DoctorReport& report) {
  std::string out;
  for (const Mark mark : {Mark::wrong, Mark::warn}) {
    for (const auto& group : report.groups) {
      for (const auto& finding : group.findings) {
        if (finding.mark == mark && !finding.fix.empty()) out += base::text(" ", sign_of(mark), " ", finding.fix, "\n");
      }
    }
  }
  return out;
}

}  // namespace

const char* name_of(Mark mark) {
  switch (mark) {
    case Mark::ok:
      return "ok";
    case Mark::note:
      return "note";
    case Mark::warn:
      return "warn";
    case Mark::wrong:
      return "wrong";
  }
  return "note";
}

int64_t DoctorReport::count(Mark mark) const {
  int64_t total = 0;
  for (const auto& group : groups) {
    total += std::count_if(group.findings.begin(), group.findings.end(), [&](const auto& f) { return f.mark == mark; });
  }
  return total;
}

std::string to_text(const DoctorReport& report) {
  constexpr size_t kWidth = 110;
  constexpr size_t kIndent = 18;
  std::string out;
  for (const auto& line : report.verdict) out += folded(line, 0, kWidth) + "\n";
  out += report.headline + "\n";
  for (const auto& group : report.groups) {
    out += "\n";
    std::string title = group.title;
    for (const auto& finding : group.findings) {
      title.resize(kIndent - 4, ' ');
      out += base::text(title, sign_of(finding.mark), " ", folded(finding.what, kIndent, kWidth), "\n");
      title.clear();
    }
  }
  const std::string fixes = fixes_text(report);
  const int64_t wrong = report.count(Mark::wrong);
  const int64_t warned = report.count(Mark::warn);
  out += base::text("\n", wrong, " wrong (XX), ", warned, " to improve (!)");
  return out + (fixes.empty() ? "; nothing to fix here\n" : "; what fixes them:\n" + fixes);
}

base::Json to_json(const DoctorReport& report) {
  base::Json all = base::Json::object();
  all["headline"] = report.headline;
  all["verdict"] = base::Json::array_of(report.verdict);
  all["wrong"] = report.count(Mark::wrong);
  all["warn"] = report.count(Mark::warn);
  base::Json findings = base::Json::array();
  for (const auto& group : report.groups) {
    for (const auto& finding : group.findings) {
      base::Json row = base::Json::object();
      row["group"] = group.title;
      row["mark"] = name_of(finding.mark);
      row["what"] = finding.what;
      row["fix"] = finding.fix;
      findings.push_back(std::move(row));
    }
  }
  all["findings"] = std::move(findings);
  return all;
}

}  // namespace lockstep::verbs::doctor
