#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the page docs/documents/applicant.md; further arguments go to the command (--report FILE.md, --json FILE: full paths).
set -euo pipefail
cd "$(dirname "$(realpath "$0")")"
exec lockstep plan --advise apply project.json "$@"
