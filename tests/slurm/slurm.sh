#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real Slurm on this one machine for the length of one command, in a copy-on-write view of the machine that vanishes
# with it: packages, /etc, processes and network of the machine itself stay as they are. Needs root and Debian 12.
#
#   slurm.sh run COMMAND...   installs and starts Slurm with 4 nodes of 2 CPUs and 2 pretended GPUs, runs COMMAND there
#                             as on a login node, gives its exit code; 77 when this machine cannot do it
#   slurm.sh crash nX         within COMMAND: power off one node
#   slurm.sh start nX         within COMMAND: power it on again
#   slurm.sh restart          within COMMAND: kill -9 of the controller when its state is on its disk, and a new one
set -euo pipefail

NODES=${LOCKSTEP_SLURM_NODES:-4}  # at most 9: the port pattern below has one digit
LAB=/run/slurm-lab                # state, logs and process ids, inside the view
SELF=$(readlink -f "$0")
TREE=$(cd "$(dirname "$SELF")/../.." && pwd)

say() { echo "slurm.sh: $*"; }
cannot() { say "cannot run here: $*"; exit 77; }

# --- outside: make the view -------------------------------------------------------------------------------------------

run_in_view() {
  [ "$(id -u)" = 0 ] || cannot "needs root"
  command -v apt-get > /dev/null || cannot "needs Debian's apt-get"
  unshare --mount --pid --fork true 2> /dev/null || cannot "may not make namespaces"
  # The pid namespace ends with its first process and takes every daemon along; the mounts end with the namespace.
  exec unshare --mount --propagation private --pid --fork --kill-child "$SELF" inside-view "$@"
}

enter_view() {
  local store view folder
  for folder in /media /srv /mnt; do  # an empty folder that is there anyway: nothing is left behind, however this ends
    [ -d "$folder" ] && [ "${TREE#"$folder"/}" = "$TREE" ] && store=$folder
  done
  mount -t tmpfs -o size=2g,mode=0755 slurm-view "${store:?no folder to mount on}"
  view=$store/root
  mkdir "$store/changes" "$store/work" "$view"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$store/changes,workdir=$store/work" "$view" 2> /dev/null \
    || cannot "no overlay file system"
  mount --rbind /dev "$view/dev"
  mount --rbind /sys "$view/sys"
  mount -t proc proc "$view/proc"
  mount -t tmpfs -o mode=0755 tmpfs "$view/run"
  mount -t tmpfs -o mode=1777 tmpfs "$view/tmp"
  mkdir -p "$view$TREE"
  mount --rbind "$TREE" "$view$TREE"  # also when the source tree is a mount of its own
  exec chroot "$view" "$SELF" inside-root "$@"
}

# --- inside: install, start, run --------------------------------------------------------------------------------------

install_packages() {
  command -v slurmctld > /dev/null && command -v munged > /dev/null && [ -x /usr/sbin/sshd ] && command -v rsync > /dev/null && return
  printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d  # packages must not start their daemons: we do
  chmod +x /usr/sbin/policy-rc.d
  local log=/tmp/apt.log
  apt-cache show slurm-wlm > /dev/null 2>&1 || apt-get update > "$log" 2>&1 || { cat "$log"; cannot "apt-get update failed"; }
  DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends slurm-wlm munge libpmix2 slurm-wlm-torque iproute2 openssh-server rsync \
    > "$log" 2>&1 || { tail -20 "$log"; cannot "apt-get install failed"; }
}

write_configuration() {
  local host=$1 node
  mkdir -p "$LAB/state" "$LAB/spool" "$LAB/log" /etc/slurm
  echo "127.0.0.1 localhost $host" > /etc/hosts
  for node in $(seq "$NODES"); do echo "127.0.0.1 n$node" >> /etc/hosts; done
  # A character device must stand behind a GPU, or Slurm sets no CUDA_VISIBLE_DEVICES; /dev/null's number will do.
  local gpu
  for gpu in 0 1; do [ -e "/etc/slurm/gpu$gpu" ] || mknod "/etc/slurm/gpu$gpu" c 1 3; done
  echo 'CgroupAutomount=no' > /etc/slurm/cgroup.conf
  # PBS_JOBID and PBS_O_WORKDIR for scripts that come through qsub.
  find /usr/lib -name spank_pbs.so -printf 'required %p\n' > /etc/slurm/plugstack.conf
  printf 'AutoDetect=off\nNodeName=n[1-%d] Name=gpu File=/etc/slurm/gpu[0-1]\n' "$NODES" > /etc/slurm/gres.conf
  cat > /etc/slurm/slurm.conf << CONF
ClusterName=lab
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
# A requeued job waits for its old credential to expire: 2 minutes by default.
AuthInfo=cred_expire=5
StateSaveLocation=$LAB/state
SlurmdSpoolDir=$LAB/spool/%n
SlurmctldPidFile=$LAB/slurmctld.pid
SlurmdPidFile=$LAB/slurmd-%n.pid
SlurmctldLogFile=$LAB/log/slurmctld.log
SlurmdLogFile=$LAB/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=gpu
ReturnToService=2
# A node that is silent for so long is down: far above what a busy machine needs, since it would take the node's jobs along.
SlurmdTimeout=20
SlurmctldTimeout=30
KillWait=5
JobRequeue=1
RequeueExit=85
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName=n[1-$NODES] NodeHostname=$host NodeAddr=127.0.0.1 Port=7001-700$NODES CPUs=2 RealMemory=2000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=24:00:00 State=UP
CONF
}

# A node has its own host name, processes, /tmp and /dev/shm: killing its first process is pulling its plug.
start_node() {
  mkdir -p "$LAB/spool/$1"
  setsid unshare --mount --uts --ipc --pid --fork --kill-child --propagation private /bin/sh -c "
    hostname $1; mount -t proc proc /proc; mount -t tmpfs -o mode=1777 tmpfs /tmp
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm; exec slurmd -D -N $1" > "$LAB/log/$1.out" 2>&1 < /dev/null &
  echo $! > "$LAB/$1.pid"
}

start_slurm() {
  ip link set lo up
  # With loopback alone the resolver finds no address even for 127.0.0.1 (AI_ADDRCONFIG): give lo a second one.
  ip addr add 10.99.0.1/32 dev lo
  hostname slurmlab
  write_configuration slurmlab
  install -d -o munge -g munge -m 0755 /run/munge
  install -d -o munge -g munge -m 0700 /var/log/munge /var/lib/munge
  runuser -u munge -- /usr/sbin/munged
  slurmctld
  local node
  for node in $(seq "$NODES"); do start_node "n$node"; done
  for _ in $(seq 1200); do
    [ "$(sinfo -h -t idle -o %D 2> /dev/null || true)" = "$NODES" ] && return
    sleep 0.1
  done
  sinfo -N -l || true
  tail -n 5 "$LAB"/log/*
  cannot "the nodes did not come up in 120 s"
}

# The controller writes down every few seconds what has changed: killed before that it forgets jobs that it has just taken or
# started. A change of ours tells when all before it is written.
save_state() {
  local job
  touch "$LAB/restart"
  for _ in $(seq 240); do
    [ "$LAB/state/job_state" -nt "$LAB/restart" ] && return
    for job in $(squeue -h -t PENDING,RUNNING -o %A); do
      scontrol update "JobId=$job" "Comment=$SECONDS" > /dev/null 2>&1 && break  # unless it has just ended
    done
    sleep 0.5
  done
  say "the controller does not write down its state"
  return 1
}

restart_controller() {
  local old
  save_state
  old=$(cat "$LAB/slurmctld.pid")
  kill -9 "$old"
  sleep 1
  while [ -e "/proc/$old" ]; do sleep 0.1; done
  slurmctld
}

case ${1:-} in
  run) shift; run_in_view "$@" ;;
  inside-view) shift; enter_view "$@" ;;
  inside-root)
    shift
    cd "$TREE"
    started=$SECONDS
    install_packages
    say "installed into the view after $((SECONDS - started)) s"
    exec unshare --net --uts "$SELF" inside-net "$@" ;;
  inside-net)
    shift
    started=$SECONDS
    start_slurm
    say "$(slurmctld -V), $NODES nodes idle after $((SECONDS - started)) s"
    code=0
    LOCKSTEP_VIRTUAL_SLURM=1 "$@" || code=$?
    say "down; the command gave $code"
    exit "$code" ;;
  crash) kill -9 "$(cat "$LAB/$2.pid")" ;;
  start) start_node "$2" ;;
  restart) restart_controller ;;
  *) sed -n '3,12p' "$SELF"; exit 2 ;;
esac
