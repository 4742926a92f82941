// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/base/table.h"

namespace lockstep::advice {

// A document for people: what advice is written as, once, and shown as Markdown or as a page that prints well. Plain
// text throughout; markup in it is shown, never obeyed.
struct Paper {
  struct Heading {
    std::string words;
  };
  struct Paragraph {
    std::string words;
  };
  struct Points {
    std::vector<std::string> lines;
  };
  struct Grid {
    std::vector<base::Column> columns;
    std::vector<std::vector<std::string>> rows;  // as many cells as columns, each
    std::string caption;
  };
  // A picture: one bar a row, as long as its value.
  struct Bars {
    struct Row {
      std::string label;
      double value = 0;  // 0 or more
      std::string words;
    };
    std::string caption;
    std::vector<Row> rows;

    double largest() const;
  };
  using Part = std::variant<Heading, Paragraph, Points, Grid, Bars>;

  std::string title;
  std::vector<Part> parts;

  void heading(std::string words) { parts.emplace_back(Heading{std::move(words)}); }
  void say(std::string words) { parts.emplace_back(Paragraph{std::move(words)}); }
  void list(std::vector<std::string> lines) { parts.emplace_back(Points{std::move(lines)}); }
  void table(Grid grid);  // REQUIRES: rows as wide as the columns
  void bars(Bars picture) { parts.emplace_back(std::move(picture)); }
};

std::string to_markdown(const Paper& paper);
std::string to_html(const Paper& paper);  // self-contained
std::string to_text(const Paper& paper);  // for terminals
// Writes FILE.md or FILE.html; user error for another ending.
void write_paper(const std::string& file, const Paper& paper);

// What a piece of advice is: words for people and the figures behind them for programs.
struct Advice {
  Paper paper;
  base::Json document;
};

}  // namespace lockstep::advice
