#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A signal anywhere is one decision of all ranks: SIGTERM and SIGUSR1 on each of three ranks, on mpirun, on the
supervisor; SIGHUP (a lost session), SIGXCPU and SIGPIPE where they would end one. Each time all ranks stop after the same step, everything is saved, the exit code is 85, no process is left and
nothing was restarted; at the end the weights are those of the undisturbed run."""
import json
import signal
import sys

from supervised import Run, folder_for, gone, send, until, verdict

RANKS = 3
ENDLESS = 1000000  # epochs, until all signals were sent: how fast the machine is does not matter then
SIGNALS = [(target, number) for target in (*range(RANKS), "mpirun", "supervisor") for number in (signal.SIGTERM, signal.SIGUSR1)] + [
    (1, signal.SIGHUP), ("mpirun", signal.SIGHUP), ("supervisor", signal.SIGHUP),
    (0, signal.SIGXCPU), ("supervisor", signal.SIGXCPU), ("supervisor", signal.SIGPIPE)]
JOB = {
    "name": "signals",
    "data": {"train": "synthetic", "samples": 96, "image_size": 64},
    "model": {"name": "smallcnn", "classes": 3},
    "training": {"global_batch": 12, "epochs": ENDLESS, "optimizer": {"name": "sgd", "lr": 0.001}, "schedule": {"name": "constant"},
                 "threads": 1},
    "checkpoint": {"every_epochs": 100000},  # nothing but the stops themselves saves
}
STEPS_PER_EPOCH = 8


def last_step(run):
    return max((row["step"] for row in run.events("save", "stop")), default=0)


def one(run, target, number):
    """What went wrong; None: nothing."""
    steps = last_step(run)
    run.start()
    if not until(lambda: len(run.living_ranks()) == RANKS and min(heartbeat["step"] for heartbeat in run.heartbeats().values()) > steps, 300, 0.1):
        return "did not begin\n" + run.tail()
    processes = run.descendants()
    pid = {"mpirun": run.launcher, "supervisor": lambda: run.process.pid}.get(target, lambda: until(lambda: run.living_ranks().get(target), 60))()
    send(pid, number)
    code = run.wait(300)
    if code != 85:
        return f"exit code {code}\n{run.tail()}"
    if not gone(processes):
        return "processes are left"
    stop, saves = run.events("stop")[-1], run.events("save")
    if saves[-1]["step"] != stop["step"] or stop["step"] <= steps:
        return f"stopped at {stop}, saved {saves[-1]}"
    named = number.name + (f" on rank {target}" if target in range(1, RANKS) else "")
    if not (stop["reason"] == named if isinstance(target, int) else stop["reason"].startswith(named)):
        return f"the reason is '{stop['reason']}', not '{named}'"
    return "it was restarted" if run.events("restart") else None


def main():
    passed = failed = sent = 0
    with folder_for("signals", JOB) as folder:
        run = Run(folder, "signalled", RANKS)
        for target, number in SIGNALS:
            wrong = one(run, target, number)
            passed, failed, sent = passed + (not wrong), failed + bool(wrong), sent + 1
            where = f"rank {target}" if isinstance(target, int) else target
            print(f"{'FAIL' if wrong else 'ok  '} {number.name} on {where}{': ' + wrong if wrong else ''}", flush=True)
        epochs = last_step(run) // STEPS_PER_EPOCH + 2
        print(f"{epochs} epochs", flush=True)
        (folder / "job.json").write_text(json.dumps(JOB | {"training": JOB["training"] | {"epochs": epochs}}))
        straight = Run(folder, "straight", RANKS).start()
        codes = (run.start().wait(600), straight.wait(600))
        same = codes == (0, 0) and run.digest() == straight.digest()
        print(f"{'ok  ' if same else 'FAIL'} the weights of the undisturbed run {codes}")
        passed, failed = passed + same, failed + (not same)
        run.end()
    return verdict("signals", passed, failed, sent)


if __name__ == "__main__":
    sys.exit(main())
