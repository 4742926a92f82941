# SPDX-License-Identifier: Apache-2.0
"""Other loaders over the same images, an epoch on demand: the peers of `lockstep bench loader`.

peer_loader.py KIND SOURCE THREADS BATCH: SOURCE is a folder of classes, or of tar shards. Each line read starts one epoch
of RandomResizedCrop(224), flip and normalise to float; the answer is "SECONDS CPU_SECONDS SAMPLES". The CPU time counts
from one answer to the next: what a loader prepares in between belongs to its next epoch.
"""
import glob
import os
import resource
import sys
import time

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def transforms():
    import torch
    from torchvision.transforms import v2
    return v2.Compose([v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip(),
                       v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])


def tensor_of(data):
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg
    return decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), mode=ImageReadMode.RGB)


def one_thread(_):
    import torch
    torch.set_num_threads(1)


def batches_of(dataset, threads, batch, **options):
    import torch
    return torch.utils.data.DataLoader(dataset, batch, num_workers=threads, persistent_workers=True,
                                       worker_init_fn=one_thread, **options)


def torchvision_epoch(source, threads, batch):
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    import torchvision
    data = ImageFolder(source, transforms(), loader=lambda path: decode_jpeg(read_file(path), mode=ImageReadMode.RGB))
    loader = batches_of(data, threads, batch, shuffle=True)
    return torchvision.__version__, lambda: sum(len(images) for images, _ in loader)


def pillow_epoch(source, threads, batch):
    import PIL
    from torchvision import transforms as v1
    from torchvision.datasets import ImageFolder
    steps = v1.Compose([v1.RandomResizedCrop(224), v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(MEAN, STD)])
    loader = batches_of(ImageFolder(source, steps), threads, batch, shuffle=True)
    return PIL.__version__, lambda: sum(len(images) for images, _ in loader)


def webdataset_epoch(source, threads, batch):
    import webdataset
    steps = transforms()
    urls = sorted(glob.glob(os.path.join(source, "*.tar")))
    data = (webdataset.WebDataset(urls, shardshuffle=len(urls), empty_check=False).shuffle(256)
            .to_tuple("jpg", "cls").map_tuple(lambda data: steps(tensor_of(data)), int).batched(batch))
    loader = batches_of(data, threads, None)
    return webdataset.__version__, lambda: sum(len(images) for images, _ in loader)


def dali_epoch(source, threads, batch, antialias):
    from nvidia import dali
    from nvidia.dali import fn, types
    shards = sorted(glob.glob(os.path.join(source, "*.tar")))

    @dali.pipeline_def(batch_size=batch, num_threads=threads, device_id=None)
    def pipeline():
        if shards:
            jpegs, labels = fn.readers.webdataset(paths=shards, index_paths=[path[:-4] + ".idx" for path in shards],
                                                  ext=["jpg", "cls"], random_shuffle=True, name="reader")
        else:
            jpegs, labels = fn.readers.file(file_root=source, random_shuffle=True, name="reader")
        images = fn.decoders.image_random_crop(jpegs, random_area=(0.08, 1.0), random_aspect_ratio=(3 / 4, 4 / 3))
        images = fn.resize(images, size=(224, 224), interp_type=types.INTERP_LINEAR, antialias=antialias)
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip(),
                                        mean=[255 * value for value in MEAN], std=[255 * value for value in STD]), labels

    pipe = pipeline()
    pipe.build()
    samples = pipe.epoch_size("reader")

    def epoch():
        steps = -(-samples // batch)
        for _ in range(steps):
            pipe.run()
        return steps * batch  # it fills the last batch with more images
    return dali.__version__, epoch


def ffcv_epoch(source, threads, batch):
    import numpy as np
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder
    import importlib.metadata
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "images.beton")
    writer = DatasetWriter(path, {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()},
                           num_workers=1)
    writer.from_indexed_dataset(ImageFolder(source))  # it has its own format only: written again at quality 90
    mean, std = 255 * np.array(MEAN), 255 * np.array(STD)
    loader = Loader(path, batch_size=batch, num_workers=threads, order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(),
                                         NormalizeImage(mean, std, np.float32), ToTensor(), ToTorchImage()],
                               "label": [IntDecoder(), ToTensor()]})
    return importlib.metadata.version("ffcv"), lambda: sum(len(images) for images, _ in loader)


KINDS = {"torchvision": torchvision_epoch, "pillow": pillow_epoch, "webdataset": webdataset_epoch,
         "dali": lambda *given: dali_epoch(*given, True), "dali-aliased": lambda *given: dali_epoch(*given, False),
         "ffcv": ffcv_epoch}


def cpu_seconds():
    """Of this process and its workers, which live on between epochs."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    tick = os.sysconf("SC_CLK_TCK")
    for task in glob.glob("/proc/self/task/*/children"):
        for child in open(task).read().split():
            fields = open(f"/proc/{child}/stat").read().rsplit(")", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / tick
    return total


def main():
    kind, source, threads, batch = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the packages print is no answer
    version, epoch = KINDS[kind](source, threads, batch)
    epoch()  # starts the workers, compiles, warms the page cache
    cpu_before = cpu_seconds()
    print("ready", version, file=answers, flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        samples = epoch()
        seconds, cpu = time.perf_counter() - start, cpu_seconds()
        print(seconds, cpu - cpu_before, samples, file=answers, flush=True)
        cpu_before = cpu
    os._exit(0)  # FFCV's threads would hold an orderly end up for ever


main()
