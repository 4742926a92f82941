// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::spec {

struct Section;  // fields.h

// Of the job document: what a task has of its own, under the task's name. job.cpp puts them into the document.
const Section& regress_section();
const Section& multilabel_section();
const Section& detect_section();
const Section& instances_section();
const Section& nowcast_section();
const Section& segment_section();
const Section& caption_section();
const Section& text_section();

}  // namespace lockstep::spec
