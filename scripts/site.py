#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site from README.md, docs/ and the program itself, without the network: site.py PROGRAM FOLDER

A page per user, per verb (from `--help`), per format. The pages are plain Markdown; what they are laid out with is Zensical
(scripts/deps.sh python), which reads the mkdocs.yml that is written here, as mkdocs-material does (--mkdocs). Then every link of every page is
followed inside the site, and a page that would load anything from elsewhere is an error.
"""
import html.parser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

import program_help

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".deps/python/bin"
MOVED = {"README.md": "index.md", "docs/README.md": "guide.md", "python/README.md": "python.md", "lockstep/README.md": "tour.md",
         "CONTRIBUTING.md": "contributing.md"}
FOLDERS = {"documents": "Five people who asked", "formats": "Every file that Lockstep reads or writes", "decisions": "What was chosen, and why"}
LOOK_UP = ["config.md", "vocabulary.md", "figures.md", "security.md", "allocator.md"]
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")


def site_pages():
    """Where each page of the repository lies in the site."""
    pages = dict(MOVED)
    for path in sorted((ROOT / "docs").rglob("*.md")):
        name = path.relative_to(ROOT).as_posix()
        pages.setdefault(name, name.removeprefix("docs/"))
    return pages


def title_of(page):
    found = re.search(r"^# (.+)$", page, re.M)
    return re.sub(r"[`*]", "", found.group(1)) if found else "?"


def lead(pages, files, source, target):
    """A link of the repository as one of the site; `files` gathers what must be copied beside the pages."""
    if re.match(r"[a-z]+:|#", target):
        return target
    name, _, part = target.partition("#")
    path = os.path.normpath(os.path.join(os.path.dirname(source), name))
    if not (ROOT / path).exists():
        raise SystemExit(f"{source} leads to {target}, which is not there")
    if path in pages:
        place = pages[path]
    elif path.removeprefix("docs/") in FOLDERS:
        place = path.removeprefix("docs/") + "/index.md"
    else:
        place = files[path] = "files/" + path
        if (ROOT / path).is_dir():
            place += "/index.html"
    here = os.path.dirname(pages[source]) or "."
    return os.path.relpath(place, here) + ("#" + part if part else "")


def verb_page(verb):
    lines = [f"# lockstep {verb.name}", "", verb.summary[0].upper() + verb.summary[1:] + ".", "", "```", verb.usage, "```", ""]
    if verb.options:
        lines += ["| option | what |", "|---|---|"]
        lines += [f"| `{(option.name + ' ' + option.value).strip()}` | {cell(option.help)} |" for option in verb.options]
    lines += ["", *([] if not verb.notes else ["```", verb.notes, "```"])]
    for one in verb.below:
        lines += ["", *verb_page(one).replace("# lockstep", "## lockstep", 1).split("\n")]
    return "\n".join(lines) + "\n"


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def list_folder(folder):
    rows = "".join(f'<li><a href="{name}">{name}</a></li>' for name in sorted(os.listdir(folder)) if name != "index.html")
    (folder / "index.html").write_text(f"<!doctype html><title>{folder.name}</title><ul>{rows}</ul>\n")


def gather(program, folder):
    """Writes every page below folder/pages and gives the navigation: [(heading, [pages])]."""
    pages, files, titles = site_pages(), {}, {}
    for source, place in pages.items():
        page = (ROOT / source).read_text()
        page = LINK.sub(lambda found: found[1] + lead(pages, files, source, found[2]) + found[3], page)
        titles[place] = title_of(page)
        write(folder / "pages" / place, page)
    verbs = program_help.read_verbs(program)
    for verb in verbs:
        write(folder / f"pages/verbs/{verb.name}.md", verb_page(verb))
    table = "\n".join(f"| [{verb.name}]({verb.name}.md) | {cell(verb.summary)} |" for verb in verbs)
    write(folder / "pages/verbs/index.md", f"# The verbs, in the order of work\n\n| verb | what it does |\n|---|---|\n{table}\n")
    for name, heading in FOLDERS.items():
        rows = "\n".join(f"- [{titles[place]}]({place.removeprefix(name + '/')})" for place in titles if place.startswith(name + "/"))
        write(folder / f"pages/{name}/index.md", f"# {heading}\n\n{rows}\n")
    for source, place in files.items():
        target = folder / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / source).is_dir():
            shutil.copytree(ROOT / source, target, ignore=shutil.ignore_patterns("*.md", "__pycache__"), dirs_exist_ok=True)
            list_folder(target)
        else:
            shutil.copy(ROOT / source, target)
    shown = {"index.md", "start.md", "install.md", "guide.md", "python.md", "tour.md", "contributing.md", *LOOK_UP}
    guides = [place for place in titles if "/" not in place and place not in shown]
    inside = {name: [f"{name}/index.md", *(place for place in titles if place.startswith(name + "/"))] for name in FOLDERS}
    return [("Start", [place for place in ("index.md", "start.md", "install.md", "guide.md") if place in titles]),
            ("Users", inside["documents"]), ("Verbs", ["verbs/index.md", *(f"verbs/{verb.name}.md" for verb in verbs)]),
            ("Guides", ["python.md", *guides]), ("Look up", [place for place in LOOK_UP if place in titles]),
            ("Formats", inside["formats"]), ("Inside", ["tour.md", "contributing.md", *inside["decisions"]])]


def write(path, page):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page)


def write_settings(folder, navigation):
    lines = ["site_name: Lockstep", "docs_dir: pages", "site_dir: site", "use_directory_urls: false",
             "theme:", "  name: material", "  font: false", "  palette:", "    - media: '(prefers-color-scheme: light)'", "      scheme: default",
             "    - media: '(prefers-color-scheme: dark)'", "      scheme: slate", "markdown_extensions:", "  - tables",
             "  - toc:", "      permalink: true", "plugins:", "  - search", "nav:"]
    for heading, pages in navigation:
        lines += [f"  - {heading}:", *(f"      - {page}" for page in pages)]
    (folder / "mkdocs.yml").write_text("\n".join(lines) + "\n")


class Links(html.parser.HTMLParser):
    """href and src of a page, its ids, and what it would load from elsewhere."""

    def __init__(self):
        super().__init__()
        self.links, self.ids, self.loads = [], set(), []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.ids |= {found[name] for name in ("id", "name") if found.get(name)}
        for name in ("href", "src"):
            if not found.get(name):
                continue
            if re.match(r"(https?:)?//", found[name]):
                if tag in ("script", "img", "iframe") or (tag == "link" and found.get("rel") in ("stylesheet", "preload", "preconnect", "icon")):
                    self.loads.append(found[name])
            elif not re.match(r"[a-z]+:", found[name]):
                self.links.append(found[name])


def check(site):
    parsed = {}
    for path in site.rglob("*.html"):
        if "files" not in path.relative_to(site).parts:
            parsed[path] = Links()
            parsed[path].feed(path.read_text())
    wrong, count = [], 0
    for path, page in parsed.items():
        wrong += [f"{path.relative_to(site)} loads {name}" for name in page.loads]
        for link in page.links:
            name, _, part = urllib.parse.unquote(link).partition("#")
            target = path if not name else (site if name.startswith("/") else path.parent) / name.lstrip("/").split("?")[0]
            target = pathlib.Path(os.path.normpath(target))
            target = target / "index.html" if target.is_dir() else target
            count += 1
            if path.name == "404.html":
                continue
            if not target.exists():
                wrong.append(f"{path.relative_to(site)}: {link} leads nowhere")
            elif part and target in parsed and part not in parsed[target].ids and not part.startswith("__"):
                wrong.append(f"{path.relative_to(site)}: {link}: no such part")
    return len(parsed), count, wrong


def main():
    words = [word for word in sys.argv[1:] if word != "--mkdocs"]
    program, folder = words[0], pathlib.Path(words[1]).resolve()
    for name in ("pages", "site"):
        shutil.rmtree(folder / name, ignore_errors=True)
    write_settings(folder, gather(program, folder))
    tool = "mkdocs" if "--mkdocs" in sys.argv else "zensical"
    done = subprocess.run([TOOLS / tool, "build", "-f", "mkdocs.yml"], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{tool} build: exit {done.returncode}\n{done.stdout}{done.stderr}")
    pages, links, wrong = check(folder / "site")
    for line in sorted(set(wrong)):
        print(f"WRONG {line}")
    print(f"site: {pages} pages, {links} links, {len(set(wrong))} wrong: {os.path.relpath(folder)}/site/index.html")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
