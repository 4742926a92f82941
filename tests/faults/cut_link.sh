#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two nodes in network namespaces, joined by a cable of their own (a veth pair), train together under one supervisor;
# then the cable is cut. The supervisor must say so, leave the lost node out, and finish on what remains; nothing of the
# lost ranks may live on. About 60 s. Exit code 77: this machine cannot (the reason is printed).
set -uo pipefail
HERE=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TREE=$(cd "$HERE/../.." && pwd)
LOCKSTEP=${LOCKSTEP_BUILD:-$TREE/build}/bin/lockstep
A=lsa$$ B=lsb$$  # the namespaces; the nodes call themselves noda and nodb

cannot() { echo "cut_link: cannot run here: $*"; exit 77; }
[ "$(id -u)" = 0 ] || cannot "needs root"
command -v ip > /dev/null || cannot "needs ip (Debian: iproute2)"
command -v mpirun > /dev/null || cannot "needs mpirun"
ip netns add $A 2> /dev/null || cannot "may not make network namespaces"
LAB=$(mktemp -d /var/tmp/cut-link-XXXXXX)

leave() {
  local pid
  for pid in $(ip netns pids $A 2> /dev/null) $(ip netns pids $B 2> /dev/null); do kill -9 "$pid" 2> /dev/null; done
  ip netns del $A 2> /dev/null
  ip netns del $B 2> /dev/null
  rm -rf "$LAB"
}
trap leave EXIT

ip netns add $B
ip link add cutA netns $A type veth peer name cutB netns $B 2> /dev/null || cannot "may not make a veth pair"
ip -n $A addr add 10.77.0.1/24 dev cutA && ip -n $A link set cutA up && ip -n $A link set lo up
ip -n $B addr add 10.77.0.2/24 dev cutB && ip -n $B link set cutB up && ip -n $B link set lo up
printf '127.0.0.1 localhost\n10.77.0.1 noda\n10.77.0.2 nodb\n' > "$LAB/hosts"
printf 'noda\nnoda\nnodb\nnodb\n' > "$LAB/nodes"

# What mpirun takes for ssh: node HOST COMMAND... runs it there, with the node's own name, network and /tmp. This tree stays
# visible, which may itself lie in /tmp.
mkdir "$LAB/tree"
cat > "$LAB/node" << AGENT
#!/bin/bash
host=\$1; shift
case \$host in noda) space=$A ;; nodb) space=$B ;; *) exit 1 ;; esac
exec nsenter --net=/run/netns/\$space unshare --mount --uts --propagation private /bin/bash -c '
  hostname "\$0"; mount --bind $LAB/hosts /etc/hosts; mount --bind $TREE $LAB/tree
  mount -t tmpfs -o mode=1777 tmpfs /tmp; mkdir -p $TREE; mount --bind $LAB/tree $TREE
  mount -t tmpfs -o mode=1777 tmpfs /dev/shm; cd $LAB; eval "exec \$*"' "\$host" "\$@"
AGENT
chmod +x "$LAB/node"

# Held at its third checkpoint until the cable is cut, so that no machine is too fast for the cut.
cc -shared -fPIC -O1 -o "$LAB/hold.so" "$TREE/tests/slurm/hold.c" -ldl || exit 1
echo 20 > "$LAB/run.gate"

cat > "$LAB/job.json" << 'JOB'
{"name": "cut", "data": {"train": "synthetic", "samples": 160, "image_size": 64},
 "model": {"name": "smallcnn", "classes": 3},
 "training": {"global_batch": 16, "steps": 200, "optimizer": {"name": "sgd", "lr": 0.001}, "threads": 1},
 "checkpoint": {"every_epochs": 1}}
JOB

# An allocation of two nodes, as PBS describes it.
LD_PRELOAD=$LAB/hold.so PBS_JOBID=1.lab PBS_NODEFILE=$LAB/nodes OMPI_MCA_plm_rsh_agent=$LAB/node OMPI_MCA_btl=tcp,self \
  OMPI_MCA_btl_tcp_if_include=10.77.0.0/24 OMPI_MCA_oob_tcp_if_include=10.77.0.0/24 \
  "$LAB/node" noda "$LOCKSTEP train job.json --run run --ranks 4 --patience 10" > "$LAB/log" 2>&1 &
run=$!

failures=0
expect() {  # expect NAME FILE REGEX
  if grep -qE -- "$3" "$2"; then echo "ok   $1"; else echo "FAIL $1: not found: $3"; failures=$((failures + 1)); fi
}
saves() { grep -c '"event":"save"' "$LAB/run/journal.jsonl" 2> /dev/null || true; }

while kill -0 $run 2> /dev/null && ! [ "$(saves)" -ge 2 ] 2> /dev/null; do sleep 0.2; done
expect "it has saved before the cut" "$LAB/run/journal.jsonl" '"event":"save"'
lost=$(ip netns pids $B | tr '\n' ' ')
expect "ranks on both nodes train" "$LAB/run/ranks/3.heartbeat" '"host":"nodb"'
cut=$(date +%s)
ip -n $B link set cutB down
rm "$LAB/run.gate"
for _ in $(seq 600); do grep -q '"event":"restart"' "$LAB/run/journal.jsonl" && break; kill -0 $run 2> /dev/null || break; sleep 0.2; done
echo "     restarted $(($(date +%s) - cut)) s after the cut"
wait $run; code=$?
echo "exit $code" >> "$LAB/log"
grep -E '^supervisor:' "$LAB/log" | sed 's/^/     /'
expect "the supervisor says what is wrong" "$LAB/log" '^supervisor: .*(network between|hangs|silent).* (wait|waits|hangs|in) '
expect "and names the step and the collective" "$LAB/log" '^supervisor: .*(all-reduce|broadcast|barrier|all-gather) number [0-9]+.*step [0-9]+|^supervisor: .*step [0-9]+.*(all-reduce|broadcast|barrier|all-gather) number'
expect "the lost node is left out" "$LAB/log" '^supervisor: left out: host nodb'
expect "the journal tells of it" "$LAB/run/journal.jsonl" '"event":"restart".*"ranks":2.*"left_out":\["nodb"\]'
expect "two ranks go on" "$LAB/run/journal.jsonl" '"event":"resume".*"ranks":2'
expect "to the end" "$LAB/log" '^exit 0$'
for _ in $(seq 300); do  # they look around every half second
  left=0
  for pid in $lost; do [ -e "/proc/$pid/exe" ] && readlink "/proc/$pid/exe" | grep -q lockstep && left=$((left + 1)); done
  [ "$left" = 0 ] && break
  sleep 0.2
done
echo "$left" > "$LAB/left"
expect "no rank of the lost node lives on" "$LAB/left" '^0$'
[ "$failures" = 0 ] || tail -n 30 "$LAB/log"
echo "faults injected: 1"
echo "cut_link: $failures failed"
[ "$failures" = 0 ]
