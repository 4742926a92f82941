// SPDX-License-Identifier: Apache-2.0
#pragma once

#define LOCKSTEP_VERSION "0.1.0"
