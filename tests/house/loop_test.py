#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The scripts that a contributor runs all day: what tidy looks at, what check chooses, whose turn it is in
the long suite, that all builds have one set of flags."""
import ast
import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))
import check  # noqa: E402
import test_all  # noqa: E402
import tidy  # noqa: E402
import turns  # noqa: E402
from tree import Tree  # noqa: E402  (check.py knows where)


class TidyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(setattr, tidy, "ROOT", tidy.ROOT)
        tidy.ROOT = pathlib.Path(self.folder.name)
        (tidy.ROOT / "lockstep/base").mkdir(parents=True)
        (tidy.ROOT / ".clang-tidy").write_text("Checks: x\n")
        self.git("init", "-q", "-b", "main")

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=tidy.ROOT, check=True)

    def write(self, name, text, commit=True):
        (tidy.ROOT / "lockstep/base" / name).write_text(text)
        if commit:
            self.git("add", ".")
            self.git("commit", "-q", "-m", name)

    def test_looks_at_every_commit_of_a_series_and_at_new_files_newest_first(self):
        for name in ("first.cpp", "middle.cpp", "last.cpp"):
            self.write(name, "int x;\n")
        self.write("new.cpp", "int y;\n", commit=False)
        self.write("middle.cpp", "int z;\n", commit=False)
        found = [pathlib.Path(name).name for name in tidy.changed_since(tidy.choose_base())]
        self.assertEqual(found, ["new.cpp", "middle.cpp", "last.cpp"])

    def test_looks_again_when_a_header_changed(self):
        self.write("far.h", "int far;\n")
        self.write("near.h", '#include "lockstep/base/far.h"\n')
        self.write("x.cpp", '#include "lockstep/base/near.h"\n')
        before = tidy.key("lockstep/base/x.cpp")
        self.assertEqual(before, tidy.key("lockstep/base/x.cpp"))
        self.write("far.h", "long far;\n")
        self.assertNotEqual(before, tidy.key("lockstep/base/x.cpp"))


class CheckTest(unittest.TestCase):
    def test_a_file_belongs_to_the_longest_room(self):
        rooms = ["sources", "sources/pack", "verbs/plan"]
        self.assertEqual(check.rooms_of(["lockstep/sources/pack/pack.cpp", "lockstep/verbs/plan/x.h", "README.md"], rooms),
                         ["sources/pack", "verbs/plan"])
        self.assertEqual(sorted(check.naming(["model"], "oracles/*.py")), ["fastbox", "maskrcnn", "onnx", "segment", "zoo"])
        self.assertIn("front_page", check.naming(["verbs/plan"], "scenarios/*.txt"))

    def test_a_scenario_that_expects_a_message_which_is_gone_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.addCleanup(setattr, check, "ROOT", check.ROOT)
            check.ROOT = pathlib.Path(folder)
            for name in ("lockstep/base", "tests/scenarios"):
                (check.ROOT / name).mkdir(parents=True)
            source = check.ROOT / "lockstep/base/x.cpp"
            source.write_text('complain("cannot be so (it is wrong)");\ncomplain("another message");\n')
            (check.ROOT / "tests/scenarios/a.txt").write_text("$ x\n~ cannot be so \\(it is wrong\\)\n")
            (check.ROOT / "tests/scenarios/b.txt").write_text("$ x\n~ another message\n")
            for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
                subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words], cwd=folder, check=True)
            source.write_text('complain("is wrong");\ncomplain("another message");\n')
            self.assertEqual(list(check.expecting_what_is_gone("HEAD")), ["a"])

    def test_every_scenario_names_rooms_that_are_there(self):
        rooms = {*Tree(ROOT).rooms, "verbs"}
        for path in (ROOT / "tests/scenarios").glob("*.txt"):
            for line in path.read_text().splitlines():
                if line.startswith("# rooms: "):
                    self.assertTrue(set(line[9:].split()) <= rooms, f"{path.name}: {line}")

    def test_every_oracle_names_rooms_that_are_there(self):
        rooms = Tree(ROOT).rooms
        for path in (ROOT / "tests/oracles").glob("*.py"):
            if path.name != "run.py":
                line = path.read_text().splitlines()[2]
                self.assertTrue(line.startswith("# rooms: ") and set(line[9:].split()) <= set(rooms), f"{path.name}: {line}")


class TurnsTest(unittest.TestCase):
    """The box of scripts/test_long.sh does not hold all of its parts: each has its turn, soon."""

    def setUp(self):
        listed = subprocess.run(["scripts/test_long.sh", "--list"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in listed.splitlines()]
        self.always = {name: int(seconds) for when, name, seconds in rows if when == "always"}
        self.turns = {name: int(seconds) for when, name, seconds in rows if when == "turn"}
        self.assertEqual(len(self.always) + len(self.turns), len(rows), "two parts of one name")
        self.box = int(re.search(r"LONG_SECONDS:-(\d+)", (ROOT / "scripts/test_long.sh").read_text()).group(1))

    def land(self, record, number, slowness, start):
        """One landing, as test_long.sh goes about it, where every part takes `slowness` times its seconds."""
        parts = [*self.always.items(), *((name, self.turns[name]) for name in turns.in_turn(list(self.turns), record, start))]
        spent = 0
        for name, seconds in parts:
            if spent + seconds <= self.box and spent + slowness * seconds <= self.box + 250:
                spent += slowness * seconds
                record[name] = {"commits": number}
        return record

    def test_every_part_has_its_turn_within_seven_landings(self):
        for slowness, stride in ((1, 1), (1, 26), (1.7, 0), (1.7, 50)):
            record = {}
            for number in range(1, 40):
                record = self.land(record, number, slowness, number * stride)
                if number >= turns.MOST_LANDINGS:
                    waiting = {name: number - record.get(name, {"commits": 0})["commits"] for name in (*self.always, *self.turns)}
                    self.assertLess(max(waiting.values()), turns.MOST_LANDINGS, f"landing {number}, {slowness}: {waiting}")

    def test_what_never_passed_goes_first_then_what_passed_longest_ago(self):
        record = {"a": {"commits": 30}, "b": {"commits": 10}, "d": {"commits": 10}}
        self.assertEqual(turns.in_turn(["a", "b", "c", "d"], record), ["c", "b", "d", "a"])
        self.assertEqual(turns.in_turn(["a", "b", "c", "d"], record, 3), ["c", "d", "b", "a"])

    def test_a_part_that_was_left_out_for_seven_landings_is_told(self):
        most = turns.MOST_LANDINGS * turns.LANDING
        record = {"old": {"commits": 100}, "young": {"commits": 101}}
        since = {"forgotten": 99, "new": 101}.get
        self.assertEqual(turns.overdue(["old", "young", "forgotten", "new"], record, 101 + most, since),
                         {"old": most + 1, "forgotten": most + 2})

    def test_a_part_appears_with_its_row_and_passes_with_a_commit(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("ROOT", "RECORD"):
                self.addCleanup(setattr, turns, name, getattr(turns, name))
            turns.ROOT = pathlib.Path(folder)
            turns.RECORD = turns.ROOT / "results/test_long.json"
            turns.git("init", "-q")
            script = turns.ROOT / "scripts/test_long.sh"
            for path in (script, turns.RECORD):
                path.parent.mkdir()
            for text, record in (('"old 1 x"', None), ('"old 1 x"', "{}"), ('"old 2 x" "new 1 x"', "{}"), ('"old 3 x" "new 1 x"', "{}")):
                script.write_text(text)
                if record:
                    turns.RECORD.write_text(record)
                turns.git("add", ".")
                turns.git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "--allow-empty", "-m", "x")
            self.assertEqual([turns.appeared(name) for name in ("old", "new", "next")], [2, 3, 5])
            script.write_text("changed")
            with contextlib.redirect_stdout(io.StringIO()) as said:
                turns.write_passes(["old=3"])
            self.assertEqual(turns.read_record(), {})
            self.assertIn("scripts/test_long.sh differs", said.getvalue())
            turns.git("checkout", "-q", "scripts")
            turns.write_passes(["old=3"])
            turns.write_passes(["new=1"])
            self.assertEqual([turns.read_record()[name]["commit"] for name in ("old", "new")], [turns.git("rev-parse", "--short", "HEAD")] * 2)

    def test_no_part_has_been_left_out_for_seven_landings(self):
        late = turns.overdue([*self.always, *self.turns], turns.read_record(), turns.commits())
        self.assertEqual(late, {}, f"run scripts/test_long.sh {' '.join(late)} and commit results/test_long.json")


class AllTest(unittest.TestCase):
    def test_what_python_has_not_is_run_where_it_is(self):
        for path in (ROOT / "tests/learning").glob("*.py"):
            nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.Import, ast.ImportFrom))]
            names = {name.split(".")[0] for node in nodes
                     for name in ([node.module] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names])}
            foreign = names - sys.stdlib_module_names - {"shared", *(other.stem for other in (ROOT / "tests").glob("*/*.py"))}
            command = " ".join(test_all.find_parts()[path.stem])
            self.assertEqual(bool(foreign), test_all.ORACLES in command, f"{path.name} imports {foreign}, and is run by {command}")

    def test_a_part_that_this_machine_cannot_run_is_skipped_and_keeps_its_row(self):
        parts = {"a": ["true"], "b": ["bash", "-c", "echo no stamps here; exit 77"], "c": ["false"]}
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            self.addCleanup(setattr, test_all, "ROWS", test_all.ROWS)
            test_all.ROWS = pathlib.Path(folder) / "rows.json"
            test_all.write_row({"part": "b", "outcome": "passed"})
            self.assertEqual(test_all.run_parts(parts, ["a", "b", "c"]), 1)
            rows = {row["part"]: row["outcome"] for row in json.loads(test_all.ROWS.read_text())}
        self.assertEqual(rows, {"a": "passed", "b": "passed", "c": "exit code 1"})
        self.assertIn("1 passed, 1 failed, 1 skipped", said.getvalue())

    def test_a_part_has_its_last_row_and_no_file_of_tests_learning_is_left_out(self):
        for path in (ROOT / "tests/learning").glob("*.py"):
            self.assertIn(path.stem, test_all.find_parts())
        with tempfile.TemporaryDirectory() as folder:
            self.addCleanup(setattr, test_all, "ROWS", test_all.ROWS)
            test_all.ROWS = pathlib.Path(folder) / "rows.json"
            for part, seconds in (("b", 1), ("a", 2), ("b", 3)):
                test_all.write_row({"part": part, "seconds": seconds})
            self.assertEqual([(row["part"], row["seconds"]) for row in json.loads(test_all.ROWS.read_text())], [("a", 2), ("b", 3)])


class FlagsTest(unittest.TestCase):
    def test_no_way_to_build_has_flags_of_its_own(self):
        for name in ("Makefile", "scripts/test.sh", "scripts/quickstart.sh"):
            text = (ROOT / name).read_text()
            for flag in ("LOCKSTEP_WERROR", "LOCKSTEP_UNITY", "CMAKE_BUILD_TYPE", "CMAKE_FLAGS="):
                self.assertNotIn(flag, text, name)


if __name__ == "__main__":
    unittest.main()
