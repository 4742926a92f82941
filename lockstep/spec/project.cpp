// SPDX-License-Identifier: Apache-2.0
#include "lockstep/spec/project.h"

#include "lockstep/base/text.h"
#include "lockstep/spec/fields.h"

namespace lockstep::spec {
namespace {

constexpr Check one_or_more{.low = 1};

const Section& claim_section() {
  static const Section section = Table<Claim>("claim", "statements of the applicant, each checked")
                                     .add("says", &Claim::says, "", required, "the statement, in the applicant's words")
                                     .add("kind", &Claim::kind, "", anything, "what it is checked for")
                                     .add("on", &Claim::on, "", anything, "the GPU or machine it speaks of")
                                     .add("gpus", &Claim::gpus, "GPUs", one_or_more, "how many of them")
                                     .add("value", &Claim::value, "", anything, "last_cuda: the version it names")
                                     .done();
  return section;
}

const Section& experiment_section() {
  static const Section section =
      Table<Experiment>("experiment", "the plan of work: which job, how often, when")
          .add("name", &Experiment::name, "", required, "what it is for")
          .add("job", &Experiment::job, "", required, "a job document, relative to this one")
          .add("set", &Experiment::set, "", anything, "overrides of it, as behind --set")
          .add("runs", &Experiment::runs, "runs", one_or_more, "different settings, each trained in full")
          .add("seeds", &Experiment::seeds, "runs", one_or_more, "repetitions of each")
          .add("tuning_runs", &Experiment::tuning_runs, "runs", non_negative, "further runs that look for settings")
          .add("tuning_share", &Experiment::tuning_share, "", positive_share, "of a full run that each of them takes")
          .add("from_month", &Experiment::from_month, "months", one_or_more, "month of the project in which it starts")
          .add("months", &Experiment::months, "months", one_or_more, "months over which it is spread evenly")
          .done();
  return section;
}

const Section& centre_section() {
  static const Section section =
      Table<Centre>("centre", "whom the application goes to")
          .add("name", &Centre::name, "", required, "its name, or its machine's")
          .add("unit", &Centre::unit, "", anything, "what it counts a grant in")
          .add("period_months", &Centre::period_months, "months", one_or_more, "length of an allocation period")
          .add("max_gpus", &Centre::max_gpus, "GPUs", non_negative, "largest job; 0: not stated")
          .done();
  return section;
}

}  // namespace

const Section& project_section() {
  static const Section section =
      Table<Project>("project", "what a computing centre is asked for")
          .add("name", &Project::name, "", required, "title of the application")
          .add("goal", &Project::goal, "", anything, "what shall be found out, in a sentence")
          .add("applicant", &Project::applicant, "", anything, "name and contact")
          .add("supervisor", &Project::supervisor, "", anything, "likewise, where a student applies")
          .add("experience", &Project::experience, "", anything, "machines used before, earlier allocations")
          .add("funding", &Project::funding, "", anything, "who pays for the project")
          .add("data_rights", &Project::data_rights, "", anything,
               "licence of the data; consent where people are shown")
          .add("support", &Project::support, "", anything, "wanted of the centre: help, training")
          .nest("centre", &Project::centre, centre_section())
          .add("wanted", &Project::wanted, "", required, "the GPU or machine that is asked for, a catalogue name")
          .add("gpus", &Project::gpus, "GPUs", one_or_more, "of it, in a typical run")
          .add("lesser", &Project::lesser, "", anything, "GPUs or machines at hand that have to be shown not to do")
          .add("lesser_most", &Project::lesser_most, "GPUs", one_or_more,
               "GPUs of a lesser machine that one job may have")
          .add("failure_margin", &Project::failure_margin, "", share, "of the hours, for failures and mistakes")
          .add("dataset_bytes", &Project::dataset_bytes, Type::bytes, non_negative, "of all data sets together")
          .add("dataset_files", &Project::dataset_files, "files", non_negative, "as they come, before `lockstep prep`")
          .add("kept_bytes", &Project::kept_bytes, Type::bytes, non_negative, "results beside checkpoints")
          .add("scaling", &Project::scaling, "", anything, "scaling.json that `lockstep bench scaling` wrote: measured")
          .list("experiments", &Project::experiments, experiment_section())
          .list("claims", &Project::claims, claim_section())
          .done();
  return section;
}

Project parse_project(const base::Json& document) {
  Project project;
  Problems problems;
  read_document(project_section(), &project, document, problems);
  if (problems.empty() && project.experiments.empty()) {
    problems.add(document, "experiments", "there is no experiment, so nothing is asked for",
                 "\"experiments\": [{\"name\": \"...\", \"job\": \"job.json\"}]");
  }
  for (size_t i = 0; problems.empty() && i < project.claims.size(); ++i) {
    const Claim& claim = project.claims[i];
    if (claim.kind != ClaimKind::not_checkable && claim.on.empty()) {
      problems.add(document, base::text("claims[", i, "].on"), "a claim about no GPU or machine",
                   "\"on\": \"v100-32\", or \"kind\": \"not_checkable\"");
    }
  }
  problems.throw_if_any();
  return project;
}

Project load_project(const base::Path& path) {
  Project project = parse_project(base::read_json(path));
  for (auto& experiment : project.experiments) {
    experiment.job = (path.parent_path() / experiment.job).lexically_normal().string();
  }
  if (!project.scaling.empty()) {
    project.scaling = (path.parent_path() / project.scaling).lexically_normal().string();
  }
  return project;
}

base::Json to_json(const Project& project) {
  return write_document(project_section(), &project, Which::all);
}

}  // namespace lockstep::spec
