#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The quickstart as a newcomer runs it, then what it must have reached: the network has learnt, a linear model has not.
set -euo pipefail
cd "$(dirname "$0")/../.."
start=$SECONDS
scripts/quickstart.sh "${BUILD:-build}" > quickstart.log 2>&1 || { tail -60 quickstart.log; exit 1; }
grep -q '^report: ' quickstart.log
python3 - <<'PY'
import json
import pathlib
cnn = json.loads(pathlib.Path("quickstart/run/eval.json").read_text())["top1"]
linear = json.loads(pathlib.Path("quickstart/linear.json").read_text())["top1"]
print(f"validation accuracy: CNN {cnn:.3f}, linear model {linear:.3f}, guessing 0.100")
assert cnn >= 0.95, "the network did not learn the shapes"
assert cnn - linear >= 0.4, "the margin over a linear model is not wide"
page = pathlib.Path("quickstart/run/report.html").read_text()
assert "<html" in page and "http" + "://" not in page.replace("http" + "://www.w3.org/", ""), "the report needs the network"
PY
echo "quickstart: 1 passed, 0 failed ($((SECONDS - start)) s)"
