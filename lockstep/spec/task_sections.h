// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lockstep/spec/fields.h"
#include "lockstep/spec/job.h"

namespace lockstep::spec {

// Puts what each task has of its own into the job document, under the task's name. Gives the table back.
Table<Job>& nest_task_sections(Table<Job>& table);

}  // namespace lockstep::spec
