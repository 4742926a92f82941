#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From the laptop: `submit --via` through a real sshd on loopback, as another user, into the queue of a real Slurm; status,
# watch, report and weights come back by ssh and rsync alone; the live page through a tunnel. A quarter of a minute.
# Exit code 77: this machine cannot run a virtual Slurm (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
[ -n "${LOCKSTEP_VIRTUAL_SLURM:-}" ] || exec timeout --kill-after=5 2400 "$HERE/slurm.sh" run "$HERE/via.sh"

LOCKSTEP=${LOCKSTEP_BUILD:-$TREE/build}/bin/lockstep
. "$HERE/common.sh" via

# A user of the cluster, and a laptop (this shell) that may log in as that user by a key.
useradd --create-home --home-dir /var/tmp/ada --shell /bin/bash --password '*' ada || exit 1  # no password, but not locked
mkdir -p /run/sshd /root/.ssh && chmod 700 /root/.ssh
rm -f /root/.ssh/id_ed25519*; ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
install -d -o ada -g ada -m 700 /var/tmp/ada/.ssh
install -o ada -g ada -m 600 /root/.ssh/id_ed25519.pub /var/tmp/ada/.ssh/authorized_keys
ssh-keygen -A > /dev/null
/usr/sbin/sshd -o ListenAddress=127.0.0.1 -p 2222 -o UsePAM=no || exit 1
for _ in $(seq 600); do ssh-keyscan -p 2222 127.0.0.1 2> /dev/null > /root/.ssh/known_hosts && [ -s /root/.ssh/known_hosts ] && break; sleep 0.1; done
mkdir -p /var/tmp/laptop && cd /var/tmp/laptop || exit 1
VIA=ssh://ada@127.0.0.1:2222
via() { "$LOCKSTEP" submit job.json --on lab.json --via "$VIA" --program "$LOCKSTEP" --device cpu --no-plan "$@"; }

cat > lab.json << 'MACHINE'
{"name": "lab", "nodes": 4, "cores_per_node": 2, "sockets_per_node": 1, "cpu": "epyc-7742", "memory_per_node": "2 GB",
 "scheduler": {"kind": "slurm", "partition": "main", "walltime": "24:00:00"}}
MACHINE
printf '%s' '{"name": "t", "data": {"train": "shapes/train", "validate": "shapes/validate", "image_size": 32, "threads": 1},' \
  '"model": {"name": "linear"}, "training": {"global_batch": 16, "epochs": 3, "threads": 1}}' > job.json
expect "data on the laptop" 'exit 0' "$LOCKSTEP" prep --synthesize shapes --count 60 --classes 3 --image-size 32 --to shapes

expect "no such program there" "has no 'lockstep' on the PATH.*exit 3" "$LOCKSTEP" submit job.json --on lab.json --via "$VIA"
expect "nobody may log in" 'cannot log in to nobody@127.0.0.1: .*Permission denied.*exit 3' \
  "$LOCKSTEP" submit job.json --on lab.json --via ssh://nobody@127.0.0.1:2222
expect "no sshd there" 'cannot log in to ada@127.0.0.1: .*Connection refused.*exit 3' "$LOCKSTEP" submit job.json --on lab.json --via ssh://ada@127.0.0.1:9
expect "data that is nowhere" 'data.test: absent is neither here nor on ada@127.0.0.1.*exit 2' via --set data.test=absent
expect "data that is too much" 'more than the 10 kB that are copied.*exit 2' via --most 10kB
expect "what the scheduler refuses is told here" 'ada@127.0.0.1: .*partition.*exit 2' via --site scheduler.partition=nowhere
expect "the script alone" '#SBATCH --job-name=t-.*exit 0' via --dry-run
expect "a dry run leaves no run" 'exit [12]' ls runs/t
expect "submitted" 'copies job, machine, shapes/train, shapes/validate to ada@127.0.0.1:/var/tmp/ada/lockstep/t .*queued job [0-9]+ on ada@127.0.0.1, run /var/tmp/ada/lockstep/t/runs/t .*exit 0' \
  via --walltime 30min
cat said.txt
job=$(sed -nE 's/.*queued job ([0-9]+) on .*/\1/p' said.txt)
# Its line of the queue, or of the table of links once it has begun.
expect "status from the laptop" "lockstep/t/runs/t: .*, step [0-9]+.* saved .*(job ${job:-none} [A-Z]|1 +${job:-none} ).*exit 0" "$LOCKSTEP" submit --status runs/t
if wait_for over /var/tmp/ada/lockstep/t/runs/t; then ok "it is trained"; else fail "it is trained" waited.txt; fi
expect "as that user, on a node" 'ada ada' stat -c '%U %G' /var/tmp/ada/lockstep/t/runs/t/weights.safetensors
expect "watched from the laptop" 'finished.*exit 0' "$LOCKSTEP" watch runs/t --once
expect "the report is made here" 'runs/t/report.html exit 0' "$LOCKSTEP" report runs/t
expect "without the weights" 'exit [12]' ls runs/t/weights.safetensors
expect "until they are fetched" 'is in runs/t, without checkpoints.*exit 0' "$LOCKSTEP" submit --fetch runs/t
expect "which then predict here" 'exit 0' "$LOCKSTEP" eval runs/t
expect "the same bytes" 'exit 0' cmp runs/t/weights.safetensors /var/tmp/ada/lockstep/t/runs/t/weights.safetensors

# The live page through an ssh tunnel: it runs there as that user, on loopback, and is opened at another port of the laptop;
# both below the ports that the kernel gives to connections.
ssh -p 2222 ada@127.0.0.1 "exec $LOCKSTEP report /var/tmp/ada/lockstep/t/runs/t --live --port 9124" > live.txt 2>&1 &
page=$!
if wait_for grep -q 'token=' live.txt; then ok "a live page there"; else fail "a live page there" live.txt; fi
ssh -p 2222 -N -L 127.0.0.1:9123:127.0.0.1:9124 ada@127.0.0.1 &
tunnel=$!
token=$(sed -n 's,^http://127.0.0.1:9124/?token=,,p' live.txt)
if wait_for curl -sS -o /dev/null http://127.0.0.1:9123/; then ok "the tunnel"; else fail "the tunnel" waited.txt; fi
expect "through the tunnel, by the printed link" '"loss".*exit 0' curl -sSL -c jar.txt -b jar.txt "http://127.0.0.1:9123/?token=$token"
expect "what is new, with the cookie it left" '"steps":\[.*200 exit 0' curl -sS -b jar.txt -w ' %{http_code}\n' http://127.0.0.1:9123/run.json
expect "not without" '401 exit 0' curl -sS -o /dev/null -w '%{http_code}\n' http://127.0.0.1:9123/run.json
kill "$tunnel" "$page"
expect "submitted a second time: nothing is copied twice, the run is done" 'exit 0' via --walltime 30min
expect "and cancelled" '(cancelled|no job of it).*exit 0' "$LOCKSTEP" submit --cancel runs/t
echo "via: $failures failed"
[ "$failures" = 0 ]
