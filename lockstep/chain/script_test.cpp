// SPDX-License-Identifier: Apache-2.0
#include "lockstep/chain/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/base/text.h"
#include "lockstep/site/command.h"

namespace lockstep::chain {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ScriptRequest request() {
  ScriptRequest request;
  request.name = "pets-0a1b2c";
  request.folder = "/home/me";
  request.run = "/home/me/runs/pets";
  request.job = "/home/me/runs/pets/submitted.json";
  request.program = "/opt/lockstep/bin/lockstep";
  request.device = "cpu";
  request.shape = {.nodes = 5, .ranks_per_node = 4, .gpus = false, .walltime = 48 * 3600};
  return request;
}

spec::Machine machine(const std::string& scheduler) {
  return spec::parse_machine(
      base::parse_json(R"({"name": "site", "cores_per_node": 16, "scheduler": {)" + scheduler + "}}", "machine.json"));
}

TEST(ScriptTest, AsksSlurmForWhatPlanAndMachineSay) {
  EXPECT_EQ(batch_script(request(), machine(R"("kind": "slurm", "partition": "main", "account": "abc", "qos": "gpu",
    "constraint": "v100&nvlink", "reservation": "course", "modules": ["module load openmpi/4.1"],
    "environment": ["A=two words", "B=it's"], "extra": ["--mail-type=END"])")),
            R"(#!/bin/bash
#SBATCH --job-name=pets-0a1b2c
#SBATCH --output="/home/me/runs/pets/link-%j.out"
#SBATCH --open-mode=append
#SBATCH --time=48:00:00
#SBATCH --nodes=5
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --no-requeue
#SBATCH --no-kill
#SBATCH --signal=B:USR1@120
#SBATCH --partition=main
#SBATCH --account=abc
#SBATCH --qos=gpu
#SBATCH --constraint=v100&nvlink
#SBATCH --reservation=course
#SBATCH --mail-type=END

# One link of a chain, made by `lockstep submit`: lockstep submit --status /home/me/runs/pets
trap '' USR1
cd /home/me || exit 3
module load openmpi/4.1
export A='two words'
export B='it'\''s'
export LOCKSTEP_PASS=A,B
exec /opt/lockstep/bin/lockstep submit --link /home/me/runs/pets -- /opt/lockstep/bin/lockstep train /home/me/runs/pets/submitted.json --run /home/me/runs/pets --ranks 20
)");
}

TEST(ScriptTest, AsksForGpusInTheFormOfTheSite) {
  ScriptRequest gpus = request();
  gpus.device = "cuda";
  gpus.shape.gpus = true;
  EXPECT_THAT(batch_script(gpus, machine(R"("kind": "slurm")")), HasSubstr("#SBATCH --gres=gpu:4\n"));
  EXPECT_THAT(batch_script(gpus, machine(R"("kind": "slurm", "gpu_type": "v100")")),
              HasSubstr("#SBATCH --gres=gpu:v100:4\n"));
  EXPECT_THAT(batch_script(gpus, machine(R"("kind": "slurm", "resources": "gpus_per_node", "gpu_type": "a100")")),
              HasSubstr("#SBATCH --gpus-per-node=a100:4\n"));
  EXPECT_THAT(batch_script(gpus, machine(R"("kind": "pbs")")),
              HasSubstr("#PBS -l select=5:ncpus=16:mpiprocs=4:ngpus=4\n#PBS -l place=scatter:excl\n"));
  EXPECT_THAT(batch_script(gpus, machine(R"("kind": "pbs", "gpu_type": "v100", "constraint": "mem=64gb")")),
              HasSubstr(":ngpus=4:gpu_type=v100:mem=64gb\n"));
  EXPECT_THAT(batch_script(gpus, machine(R"("kind": "pbs", "resources": "nodes", "constraint": "fast")")),
              HasSubstr("#PBS -l nodes=5:ppn=16:gpus=4:fast\n#PBS -n\n"));
}

TEST(ScriptTest, TakesTheCoresOfItsGpusAloneOnASharedNode) {
  ScriptRequest one = request();
  one.device = "cuda";
  one.shape = {.nodes = 1, .ranks_per_node = 1, .gpus = true, .walltime = 3600};
  const auto shared = [](const std::string& scheduler) {
    spec::Machine node = machine(scheduler);
    node.cores_per_node = 40;
    node.gpus_per_node = 4;
    node.scheduler.exclusive_nodes = false;
    return node;
  };
  EXPECT_THAT(batch_script(one, shared(R"("kind": "slurm")")), HasSubstr("--cpus-per-task=10\n"));
  EXPECT_THAT(work_command(one, shared(R"("kind": "slurm", "launcher": "srun")")), Contains("--cpus-per-task=10"));
  EXPECT_THAT(batch_script(one, shared(R"("kind": "pbs")")),
              HasSubstr("select=1:ncpus=10:mpiprocs=1:ngpus=1\n#PBS -l place=scatter\n"));
  EXPECT_THAT(batch_script(one, shared(R"("kind": "pbs", "resources": "nodes")")), HasSubstr("nodes=1:ppn=10:gpus=1"));
  one.shape.ranks_per_node = 3;
  EXPECT_THAT(batch_script(one, shared(R"("kind": "slurm")")), HasSubstr("--cpus-per-task=10\n"));
  EXPECT_THAT(batch_script(one, shared(R"("kind": "pbs")")), HasSubstr("ncpus=30:mpiprocs=3:ngpus=3\n"));
  one.shape.ranks_per_node = 1;
  spec::Machine whole = shared(R"("kind": "slurm")");
  whole.scheduler.exclusive_nodes = true;
  EXPECT_THAT(batch_script(one, whole), HasSubstr("--cpus-per-task=40\n"));
  one.shape.gpus = false;  // ranks on processors are there for the cores
  EXPECT_THAT(batch_script(one, shared(R"("kind": "slurm")")), HasSubstr("--cpus-per-task=40\n"));
}

TEST(ScriptTest, WritesWhatPbsWants) {
  const std::string script =
      batch_script(request(), machine(R"("kind": "pbs", "partition": "long", "account": "abc", "extra": ["-m abe"])"));
  EXPECT_THAT(script, HasSubstr("#PBS -N pets-0a1b2c\n#PBS -j oe\n#PBS -r n\n#PBS -l walltime=48:00:00\n"));
  // A warning while modules are loaded does not end the script; what qsig sends ends the shell above it all the same.
  EXPECT_THAT(script, HasSubstr("\ntrap '' USR1\ncd /home/me || exit 3\n"));
  EXPECT_THAT(script, Not(HasSubstr("#PBS -o")));  // a file a link, by the number of the job
  EXPECT_THAT(script, HasSubstr("#PBS -q long\n#PBS -A abc\n#PBS -m abe\n"));
  EXPECT_THAT(script, HasSubstr("lockstep_out=/home/me/runs/pets/link-\"$PBS_JOBID\"\n"));
  EXPECT_THAT(batch_script(request(), machine(R"("kind": "pbs", "partition": "long", "reservation": "R12")")),
              HasSubstr("#PBS -q R12\n"));
  EXPECT_THROW(batch_script(request(), machine(R"("kind": "pbs", "qos": "high")")), base::Error);
}

// The lines of the script that say where it prints, in a shell.
TEST(ScriptTest, PrintsIntoNoFileThatSomebodyHasPutThere) {
  const base::TemporaryFolder folder;
  ScriptRequest here = request();
  here.run = folder.path();
  std::string script = batch_script(here, machine(R"("kind": "pbs")"));
  const size_t begin = script.find("lockstep_out="), end = script.find("set +C\n");
  ASSERT_NE(end, std::string::npos);
  script = script.substr(begin, end + 7 - begin) + "echo words\n";
  base::write_file(folder.path() / "victim", "untouched");
  std::filesystem::create_symlink("victim", folder.path() / "link-7.n1.out");
  const auto run_job = [&](const std::string& job) {
    return site::ask({"/usr/bin/env", "PBS_JOBID=" + job, "/bin/bash", "-c", script}, std::chrono::seconds(60));
  };
  const auto outputs = [&](const std::string& job) {
    std::vector<std::string> contents;
    for (const auto& file : base::list_folder(folder.path())) {
      if (file.filename().string().starts_with("link-" + job)) contents.push_back(base::read_file(file));
    }
    return contents;
  };
  EXPECT_TRUE(run_job("7.n1").good());
  EXPECT_THAT(outputs("7.n1"), testing::UnorderedElementsAre("untouched", "words\n"));
  EXPECT_TRUE(run_job("8.n1").good());
  EXPECT_TRUE(run_job("8.n1").good());  // started again by the server
  EXPECT_THAT(outputs("8.n1"), ElementsAre("words\n", "words\n"));
  EXPECT_EQ(base::read_file(folder.path() / "link-8.n1.out"), "words\n");
}

TEST(ScriptTest, AsksForTheMemoryOfEachNode) {
  ScriptRequest shared = request();
  shared.shape.memory = (int64_t{9} << 30) - 5;
  const auto script = [&](const std::string& scheduler) { return batch_script(shared, machine(scheduler)); };
  EXPECT_THAT(script(R"("kind": "pbs")"), HasSubstr("select=5:ncpus=16:mpiprocs=4:mem=9gb\n"));
  EXPECT_THAT(script(R"("kind": "pbs", "resources": "nodes")"), HasSubstr("#PBS -l mem=45gb\n"));
  EXPECT_THAT(script(R"("kind": "pbs", "constraint": "mem=64gb")"), Not(HasSubstr("mem=9gb")));
  EXPECT_THAT(script(R"("kind": "slurm", "exclusive_nodes": false)"), HasSubstr("#SBATCH --mem=9G\n"));
  EXPECT_THAT(script(R"("kind": "slurm", "memory": "9GiB")"), HasSubstr("#SBATCH --mem=9G\n"));
  EXPECT_THAT(script(R"("kind": "slurm")"), HasSubstr("#SBATCH --mem=0\n"));
  EXPECT_THAT(script(R"("kind": "slurm", "extra": ["--mem-per-cpu=4G"])"), Not(HasSubstr("--mem=")));
  shared.shape.memory = 0;
  EXPECT_THAT(script(R"("kind": "pbs")"), Not(HasSubstr("mem=")));
}

TEST(ScriptTest, AsksForAWholeJobWhereTheSiteWantsThat) {
  ScriptRequest gpus = request();
  gpus.device = "cuda";
  gpus.shape = {.nodes = 2, .ranks_per_node = 4, .gpus = true, .walltime = 150, .memory = int64_t{8} << 30};
  const std::string script =
      batch_script(gpus, machine(R"("kind": "pbs", "resources": "job_wide", "project": "ab12", "account": "x",
    "extra": ["-l jobfs=200GB"])"));
  EXPECT_THAT(script, HasSubstr("#PBS -l walltime=00:02:30\n#PBS -l ncpus=32\n#PBS -l mem=16gb\n#PBS -l ngpus=8\n"));
  EXPECT_THAT(script, HasSubstr("#PBS -A x\n#PBS -P ab12\n#PBS -l jobfs=200GB\n"));
  EXPECT_THAT(script, Not(testing::ContainsRegex("select=|place=")));
}

TEST(ScriptTest, BringsWhatPbsLeavesBehind) {
  ScriptRequest odd = request();
  odd.commands = "/opt/p b/bin";
  odd.file_mask = 022;
  const std::string script = batch_script(odd, machine(R"("kind": "pbs", "remote_shell": "ssh")"));
  EXPECT_THAT(script, HasSubstr("umask 0022\nexport PATH=\"$PATH\":'/opt/p b/bin'\n"));
  EXPECT_THAT(script, HasSubstr("export LOCKSTEP_REMOTE_SHELL=ssh\n"));
  EXPECT_THAT(batch_script(odd, machine(R"("kind": "slurm")")), Not(HasSubstr("umask")));
  for (const char* bad : {"/home/me/it's", "/home/me/a \"b\"", "/home/me/a\\b"}) {
    odd.run = bad;
    EXPECT_THROW(batch_script(odd, machine(R"("kind": "pbs")")), base::Error) << bad;
  }
  odd.run = "/home/me/100 %";
  EXPECT_NO_THROW(batch_script(odd, machine(R"("kind": "pbs")")));
}

TEST(ScriptTest, StartsTheRanksAsTheSiteWants) {
  EXPECT_THAT(
      work_command(request(), machine(R"("kind": "slurm", "launcher": "srun")")),
      ElementsAre("srun", "--mpi=pmix", "--kill-on-bad-exit=1", "--cpus-per-task=4", "/opt/lockstep/bin/lockstep",
                  "train", "/home/me/runs/pets/submitted.json", "--run", "/home/me/runs/pets"));
  EXPECT_THAT(
      work_command(request(), machine(R"("kind": "slurm", "container": "apptainer exec --nv x.sif")")),
      ElementsAre("mpirun", "--bind-to", "none", "--map-by", "ppr:4:node", "-n", "20", "apptainer", "exec", "--nv",
                  "x.sif", "lockstep", "train", "/home/me/runs/pets/submitted.json", "--run", "/home/me/runs/pets"));
  ScriptRequest one = request();
  one.shape = {.nodes = 1, .ranks_per_node = 1, .gpus = true, .walltime = 3600};
  one.device = "cuda";
  EXPECT_THAT(work_command(one, machine(R"("kind": "slurm")")),
              ElementsAre("/opt/lockstep/bin/lockstep", "train", "/home/me/runs/pets/submitted.json", "--run",
                          "/home/me/runs/pets", "--device", "cuda"));
}

TEST(ScriptTest, KeepsAJobThatLostANodeWhereTheRanksAreWatched) {
  EXPECT_THAT(batch_script(request(), machine(R"("kind": "slurm")")), HasSubstr("--no-kill"));
  EXPECT_THAT(batch_script(request(), machine(R"("kind": "slurm", "launcher": "srun")")), Not(HasSubstr("--no-kill")));
  ScriptRequest one = request();
  one.shape.nodes = 1;
  EXPECT_THAT(batch_script(one, machine(R"("kind": "slurm")")), Not(HasSubstr("--no-kill")));
}

TEST(ScriptTest, QuotesFoldersOfAnyName) {
  ScriptRequest odd = request();
  odd.folder = "/home/me/it's $HOME";
  odd.run = "/home/me/it's \"100 %\"";
  const std::string script = batch_script(odd, machine(R"("kind": "slurm")"));
  EXPECT_THAT(script, HasSubstr(R"(--output="/home/me/it's \"100 %%\"/link-%j.out")"));
  // A real shell takes the words as they were meant.
  const std::string last = script.substr(script.find("\nexec ") + 6);
  const auto words = site::run_for_output({"bash", "-c", "printf '%s\\n' " + last}, std::chrono::seconds(60));
  ASSERT_TRUE(words);
  EXPECT_THAT(base::split(*words, '\n'), Contains(odd.run.string()).Times(2));
  EXPECT_THAT(script, HasSubstr("cd '/home/me/it'\\''s $HOME' || exit 3\n"));
}

TEST(ScriptTest, ACollectionIsPredictedInThePlaceOfTraining) {
  ScriptRequest collection = request();
  collection.job.clear();
  collection.work = {"predict", "runs/pets", "two words", "--to", "found.jsonl"};
  EXPECT_THAT(work_command(collection, machine(R"("kind": "slurm")")),
              ElementsAre("/opt/lockstep/bin/lockstep", "predict", "runs/pets", "two words", "--to", "found.jsonl",
                          "--ranks", "20"));
}

TEST(ScriptTest, AStudyIsWorkedOnOnceANode) {
  ScriptRequest study = request();
  study.job.clear();
  study.shape.nodes = 1;
  study.shape.ranks_per_node = 4;
  study.work = {"tune", "study.json", "--", "./p", "{x}"};
  EXPECT_THAT(work_command(study, machine(R"("kind": "slurm")")),
              ElementsAre("/opt/lockstep/bin/lockstep", "tune", "--workers", "4", "study.json", "--", "./p", "{x}"));
  study.shape.nodes = 3;
  study.device = "cuda";
  EXPECT_THAT(work_command(study, machine(R"("kind": "slurm", "launcher": "srun")")),
              ElementsAre("srun", "--ntasks-per-node=1", "-n", "3", "/opt/lockstep/bin/lockstep", "tune", "--workers",
                          "4", "--device", "cuda", "study.json", "--", "./p", "{x}"));
}

TEST(ScriptTest, NamesJobsSoThatTheOldestPbsTakesThem) {
  EXPECT_EQ(queue_name("/home/me/runs/pets").substr(0, 5), "pets-");
  EXPECT_NE(queue_name("/home/me/runs/pets"), queue_name("/home/you/runs/pets"));
  const std::string odd = queue_name("/home/me/runs/9 lives of a cat");
  EXPECT_LE(odd.size(), 15u);
  EXPECT_EQ(odd.substr(0, 9), "r9-lives-");
}

TEST(ScriptTest, RefusesALineEndInAPath) {
  for (const auto member : {&ScriptRequest::run, &ScriptRequest::folder}) {
    ScriptRequest bad = request();
    bad.*member = "/home/me/runs/x\ntouch /tmp/owned\n#";
    for (const char* kind : {R"("kind": "slurm")", R"("kind": "pbs")"}) {
      try {
        batch_script(bad, machine(kind));
        ADD_FAILURE() << kind;
      } catch (const base::Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("control character"));
        EXPECT_EQ(error.exit_code(), 2);
      }
    }
  }
}

TEST(ScriptTest, RoundsAWalltimeOfSlurmUpToTheMinute) {
  using spec::SchedulerKind;
  EXPECT_EQ(walltime_words(60, SchedulerKind::slurm), "00:01:00");
  EXPECT_EQ(walltime_words(61, SchedulerKind::slurm), "00:02:00");
  EXPECT_EQ(walltime_words(61, SchedulerKind::pbs), "00:01:01");
  EXPECT_EQ(walltime_words(100 * 3600, SchedulerKind::pbs), "100:00:00");
}

TEST(ScriptTest, LeavesTheWarningOutOfShortJobs) {
  // Slurm may be a minute early: a one-minute job would be stopped as it begins.
  EXPECT_EQ(signal_lead({}, 60), 0);
  EXPECT_EQ(signal_lead({}, 600), 60);
  EXPECT_EQ(signal_lead({}, 86400), 120);
  ScriptRequest short_one = request();
  short_one.shape.walltime = 60;
  EXPECT_THAT(batch_script(short_one, machine(R"("kind": "slurm")")), Not(HasSubstr("--signal")));
}

}  // namespace
}  // namespace lockstep::chain
