// SPDX-License-Identifier: Apache-2.0
#include "lockstep/advice/paper.h"

#include <algorithm>
#include <cmath>

#include "lockstep/base/embedded.h"
#include "lockstep/base/error.h"
#include "lockstep/base/file.h"
#include "lockstep/base/text.h"
#include "lockstep/version.h"

namespace lockstep::advice {
namespace {

using base::text;

// Puts `mark` before each character of `special`; a line end becomes a blank.
std::string marked(const std::string& words, std::string_view special, char mark) {
  std::string out;
  for (const char c : words) {
    if (special.find(c) != std::string_view::npos) out += mark;
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

std::string md(const std::string& words) {
  return marked(words, "|\\<`*_[", '\\');
}

std::string escaped(const std::string& words) {
  std::string out;
  for (const char c : words) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string made_by() {
  return text("Made by lockstep ", LOCKSTEP_VERSION, " (", base::build_commit(), ").");
}

bool right(const base::Column& column) {
  return column.align == base::Align::right;
}

// A line of `width` characters for the largest.
std::string bar_text(const Paper::Bars& part, int64_t width) {
  size_t label = 0;
  for (const auto& row : part.rows) label = std::max(label, row.label.size());
  std::string out;
  for (const auto& row : part.rows) {
    const double share = part.largest() > 0 ? row.value / part.largest() : 0;
    const auto length = static_cast<size_t>(std::ceil(share * static_cast<double>(width)));
    out +=
        text(row.label, std::string(label - row.label.size() + 2, ' '), std::string(length, '#'), " ", row.words, "\n");
  }
  return out;
}

struct Markdown {
  std::string operator()(const Paper::Heading& part) const { return text("## ", md(part.words), "\n\n"); }
  std::string operator()(const Paper::Paragraph& part) const { return text(md(part.words), "\n\n"); }
  std::string operator()(const Paper::Points& part) const {
    std::string out;
    for (const auto& line : part.lines) out += text("- ", md(line), "\n");
    return out + "\n";
  }
  std::string operator()(const Paper::Grid& part) const {
    std::string titles = "|", rule = "|", rows;
    for (const auto& column : part.columns) {
      titles += text(" ", md(column.title), " |");
      rule += right(column) ? "--:|" : "---|";
    }
    for (const auto& cells : part.rows) {
      rows += "|";
      for (const auto& cell : cells) rows += text(" ", md(cell), " |");
      rows += "\n";
    }
    return text(part.caption.empty() ? "" : text(md(part.caption), "\n\n"), titles, "\n", rule, "\n", rows, "\n");
  }
  std::string operator()(const Paper::Bars& part) const {
    return text(md(part.caption), "\n\n```\n", bar_text(part, 40), "```\n\n");
  }
};

struct Html {
  std::string operator()(const Paper::Heading& part) const { return text("<h2>", escaped(part.words), "</h2>\n"); }
  std::string operator()(const Paper::Paragraph& part) const { return text("<p>", escaped(part.words), "</p>\n"); }
  std::string operator()(const Paper::Points& part) const {
    std::string out = "<ul>\n";
    for (const auto& line : part.lines) out += text("<li>", escaped(line), "</li>\n");
    return out + "</ul>\n";
  }
  std::string operator()(const Paper::Grid& part) const {
    std::string out = "<div class=\"wide\"><table>\n";
    if (!part.caption.empty()) out += text("<caption>", escaped(part.caption), "</caption>\n");
    out += "<thead><tr>";
    for (const auto& column : part.columns) {
      out += text("<th", right(column) ? " class=\"n\">" : ">", escaped(column.title), "</th>");
    }
    out += "</tr></thead>\n<tbody>\n";
    for (const auto& cells : part.rows) {
      out += "<tr>";
      for (size_t i = 0; i < cells.size(); ++i) {
        out += text("<td", right(part.columns[i]) ? " class=\"n\">" : ">", escaped(cells[i]), "</td>");
      }
      out += "</tr>\n";
    }
    return out + "</tbody></table></div>\n";
  }
  std::string operator()(const Paper::Bars& part) const {
    constexpr int kRow = 26, kLabel = 240, kWidth = 460;
    std::string out =
        text("<figure><figcaption>", escaped(part.caption), "</figcaption>\n<svg role=\"img\" viewBox=\"0 0 ",
             kLabel + kWidth + 140, " ", kRow * static_cast<int>(part.rows.size()), "\">\n");
    int top = 0;
    for (const auto& row : part.rows) {
      const double share = part.largest() > 0 ? row.value / part.largest() : 0;
      const double length = std::round(share * kWidth * 10) / 10;
      out += text("<text x=\"", kLabel - 10, "\" y=\"", top + 17, "\" text-anchor=\"end\">", escaped(row.label),
                  "</text>", "<rect x=\"", kLabel, "\" y=\"", top + 4, "\" width=\"", length, "\" height=\"18\"/>",
                  "<text x=\"", kLabel + length + 8, "\" y=\"", top + 17, "\">", escaped(row.words), "</text>\n");
      top += kRow;
    }
    return out + "</svg></figure>\n";
  }
};

struct Terminal {
  std::string operator()(const Paper::Heading& part) const { return text("\n", part.words, "\n"); }
  std::string operator()(const Paper::Paragraph& part) const { return text(part.words, "\n"); }
  std::string operator()(const Paper::Points& part) const {
    std::string out;
    for (const auto& line : part.lines) out += text("- ", line, "\n");
    return out;
  }
  std::string operator()(const Paper::Grid& part) const {
    base::Table table(part.columns);
    for (const auto& cells : part.rows) table.add(cells);
    return text(part.caption.empty() ? "" : text(part.caption, "\n"), table.to_text());
  }
  std::string operator()(const Paper::Bars& part) const { return text(part.caption, "\n", bar_text(part, 40)); }
};

template <class Form>
std::string all_parts(const Paper& paper, const Form& form) {
  std::string out;
  for (const auto& part : paper.parts) out += std::visit(form, part);
  return out;
}

// Made for A4 as well as for a screen: who decides about a grant reads it printed.
constexpr const char* kStyle = R"(
body{font:16px/1.5 system-ui,"DejaVu Sans",sans-serif;color:#1c2430;background:#fff;max-width:62rem;margin:2rem auto;padding:0 1.2rem}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 1rem}h2{font-size:1.15rem;margin:2rem 0 .5rem;border-bottom:1px solid #d5dbe3;padding-bottom:.25rem}
table{border-collapse:collapse;width:100%;margin:.8rem 0;font-size:.88rem}caption{text-align:left;color:#5a6675;padding:.2rem 0}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid #e4e8ee}th{color:#5a6675;font-weight:600}
.n{text-align:right;font-variant-numeric:tabular-nums}footer{color:#5a6675;font-size:.8rem;margin-top:2.5rem}
.wide{overflow-x:auto}figure{margin:1rem 0}figcaption{color:#5a6675;font-size:.88rem}svg{width:100%;max-width:52rem;font-size:13px;fill:#1c2430}svg rect{fill:#3b6ea5}
@media print{body{margin:0;max-width:none;font-size:10.5pt}table{font-size:7.5pt}h2{break-after:avoid}tr{break-inside:avoid}}
)";

}  // namespace

double Paper::Bars::largest() const {
  double most = 0;
  for (const auto& row : rows) most = std::max(most, row.value);
  return most;
}

void Paper::table(Grid grid) {
  for (const auto& row : grid.rows) base::ensure(row.size() == grid.columns.size(), "a row has a cell a column");
  parts.emplace_back(std::move(grid));
}

std::string to_markdown(const Paper& paper) {
  return text("# ", md(paper.title), "\n\n", all_parts(paper, Markdown{}), made_by(), "\n");
}

std::string to_html(const Paper& paper) {
  return text("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<title>", escaped(paper.title),
              "</title>\n<meta name=\"viewport\" content=\"width=device-width\">\n<style>", kStyle,
              "</style></head><body>\n<h1>", escaped(paper.title), "</h1>\n", all_parts(paper, Html{}), "<footer>",
              escaped(made_by()), "</footer>\n</body></html>\n");
}

std::string to_text(const Paper& paper) {
  return text(paper.title, "\n", all_parts(paper, Terminal{}));
}

void write_paper(const std::string& file, const Paper& paper) {
  if (file.ends_with(".md")) return base::write_file(file, to_markdown(paper));
  if (file.ends_with(".html")) return base::write_file(file, to_html(paper));
  throw base::Error(base::Blame::user, text("--report ", file, ": which kind of page?"), "FILE.html or FILE.md");
}

}  // namespace lockstep::advice
