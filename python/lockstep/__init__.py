# SPDX-License-Identifier: Apache-2.0
"""Records your own PyTorch step for `lockstep plan --recording`: needs only torch, and no GPU."""
from .record import record
from .snapshot import from_snapshot

__all__ = ["from_snapshot", "record"]
