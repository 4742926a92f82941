# SPDX-License-Identifier: Apache-2.0
"""What lockstep.record refuses, and whether it has seen all that the script's own objects hold."""
import gc
import warnings

import torch

from . import operators


def living_modules():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # isinstance() asks objects that warn of their own names
        return [o for o in gc.get_objects() if isinstance(o, torch.nn.Module)]


def refuse_operator(name):
    if name.startswith(("aten::_cudnn_rnn", "aten::miopen_rnn")):
        raise RuntimeError(f"lockstep.record: {name} is not recorded: the memory of cuDNN's recurrent layers is not "
                           "simulated. Measure the step on a GPU and use lockstep.from_snapshot()")


def refuse_number(name, tensor):
    raise RuntimeError(
        f"lockstep.record: build() reads a number off a tensor of {list(tensor.shape)} ({name}: .item(), .tolist(), if) "
        "that depends on random numbers or data, which a simulated tensor does not have: what is built with it would be "
        "another network. Compute it with Python's own numbers, or read it inside the step")


def _name_of(parameter):
    for module in living_modules():
        for name, found in module.named_parameters():
            if found is parameter:
                return name
    return f"of {list(parameter.shape)}"


def _total(tensors):
    return sum(t.numel() for t in tensors)


def _trained(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def check_whole(storages, parameters, optimizers):
    """Every parameter, gradient and state that the modules and optimizers have must be in the recording. Gives the
    parameters, those that belong to an optimizer alone too.

    parameters: of modules on the GPU, as they were when build() returned.
    """
    everything = {id(p): p for p in parameters}
    for optimizer in optimizers:
        trained = _trained(optimizer)
        strange = [p for p in trained if p.device.type != "cuda"]
        if strange:
            raise RuntimeError(f"lockstep.record: {_total(strange)} of {_total(trained)} parameters of "
                               f"{type(optimizer).__name__} are on {strange[0].device.type}, the first is "
                               f"{_name_of(strange[0])}: move the model with .to(\"cuda\") before the optimizer is made")
        everything.update({id(p): p for p in trained})
    everything = list(everything.values())
    if not everything:
        raise RuntimeError("lockstep.record: build() made no parameters on \"cuda\"; move the model there, and keep it "
                           "alive in the step")
    missing = [p for p in everything if not storages.knows(p)]
    if missing:
        raise RuntimeError(f"lockstep.record: {_total(missing)} of {_total(everything)} parameters are not in the "
                           f"recording, the first is {_name_of(missing[0])}")
    for optimizer in optimizers:
        _check_update(storages, optimizer, _trained(optimizer))
    return everything


def _check_update(storages, optimizer, trained):
    learning = [p for p in trained if p.grad is not None]
    if not learning:
        raise RuntimeError(f"lockstep.record: the step gave none of the {len(trained)} parameters of "
                           f"{type(optimizer).__name__} a gradient (was backward() called, and are gradients still there "
                           "when the step returns? zero_grad() belongs to its beginning)")
    unseen = [p for p in learning if p.grad.device.type == "cuda" and not storages.knows(p.grad)]
    if unseen:
        raise RuntimeError(f"lockstep.record: {len(unseen)} of {len(learning)} gradients are not in the recording, the "
                           f"first is that of {_name_of(unseen[0])}")
    stateless = [p for p in learning if optimizer.state and p not in optimizer.state]
    if stateless:
        raise RuntimeError(f"lockstep.record: {type(optimizer).__name__} has no state of {len(stateless)} of "
                           f"{len(learning)} parameters with a gradient, the first is {_name_of(stateless[0])}")
    for parameter, state in optimizer.state.items():
        for tensor in operators.tensors_of(list(state.values())):
            if tensor.device.type == "cuda" and not storages.knows(tensor):
                raise RuntimeError(f"lockstep.record: state of {type(optimizer).__name__} for {_name_of(parameter)} is "
                                   "not in the recording")
