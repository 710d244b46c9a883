"""Named convolutions: layers of networks that people train."""

from __future__ import annotations

from typing import Any

from ..operator.operator import Case
from .call import Ints

WITHOUT_BIAS = frozenset(  # a normalisation follows, so that these layers have no bias
    {
        *("resnet50-l2-3x3", "resnet50-stem", "resnet50-l1-1x1", "resnet50-l1-3x3", "resnet50-down-1x1"),
        *(
            "resnet50-l3-3x3",
            "resnet50-l4-3x3",
            "resnext50-g32",
            "mobilenetv2-dw",
            "deeplab-atrous",
            "dcgan-up",
        ),
    }
)
PAPER = "layer of the published network"
LISTS = "network lists of the operator's own tests (hicann/ops-nn)"


def _case(
    name: str,
    title: str,
    x: str,
    w: str,
    dy: str,
    stride: int | Ints,
    padding: int | Ints,
    source: str = PAPER,
    **more: Any,
) -> Case:
    """Shapes as "32x128x28x28"; one number stands for all spatial axes."""
    shapes = [tuple(int(n) for n in text.split("x")) for text in (x, w, dy)]
    sizes = dict(zip(("input", "weight", "grad_output"), shapes, strict=True))
    given = {"stride": stride, "padding": padding, **more}
    if name in WITHOUT_BIAS:
        given["output_mask"] = (1, 1, 0)
    axes = len(shapes[0]) - 2
    each = {
        n: (value,) * axes if isinstance(value, int) and n in ("stride", "padding", "dilation") else value
        for n, value in given.items()
    }
    return Case(name, title, sizes, source, each)


CASES = (
    _case("resnet50-l2-3x3", "ResNet-50 stage 2, 3x3", "32x128x28x28", "128x128x3x3", "32x128x28x28", 1, 1),
    _case("resnet50-stem", "ResNet-50 stem, 7x7 stride 2", "32x3x224x224", "64x3x7x7", "32x64x112x112", 2, 3),
    _case(
        "resnet50-l1-1x1",
        "ResNet-50 stage 1, 1x1 that widens",
        "32x64x56x56",
        "256x64x1x1",
        "32x256x56x56",
        1,
        0,
    ),
    _case("resnet50-l1-3x3", "ResNet-50 stage 1, 3x3", "32x64x56x56", "64x64x3x3", "32x64x56x56", 1, 1),
    _case(
        "resnet50-down-1x1",
        "ResNet-50 downsampling, 1x1 stride 2",
        "32x256x56x56",
        "512x256x1x1",
        "32x512x28x28",
        2,
        0,
    ),
    _case("resnet50-l3-3x3", "ResNet-50 stage 3, 3x3", "32x256x14x14", "256x256x3x3", "32x256x14x14", 1, 1),
    _case("resnet50-l4-3x3", "ResNet-50 stage 4, 3x3", "32x512x7x7", "512x512x3x3", "32x512x7x7", 1, 1),
    _case(
        "resnext50-g32", "ResNeXt-50, 32 groups", "32x128x56x56", "128x4x3x3", "32x128x56x56", 1, 1, groups=32
    ),
    _case(
        "mobilenetv2-dw",
        "MobileNetV2, depthwise, stride 2",
        "64x96x112x112",
        "96x1x3x3",
        "64x96x56x56",
        2,
        1,
        groups=96,
    ),
    _case("sd-unet-320", "Stable Diffusion UNet", "2x320x64x64", "320x320x3x3", "2x320x64x64", 1, 1),
    _case(
        "sdxl-2560", "SDXL decoder after concatenation", "1x2560x32x32", "1280x2560x3x3", "1x1280x32x32", 1, 1
    ),
    _case(
        "vit-l14-patch", "ViT-L/14 patch embedding", "64x3x224x224", "1024x3x14x14", "64x1024x16x16", 14, 0
    ),
    _case(
        "deeplab-atrous",
        "DeepLab, dilation 12",
        "8x2048x33x33",
        "256x2048x3x3",
        "8x256x33x33",
        1,
        12,
        dilation=12,
    ),
    _case(
        "convnext-dw7", "ConvNeXt, depthwise 7x7", "64x96x56x56", "96x1x7x7", "64x96x56x56", 1, 3, groups=96
    ),
    _case("fasterrcnn-neck", "Faster R-CNN neck", "32x256x25x40", "256x256x3x3", "32x256x25x40", 1, 1, LISTS),
    _case(
        "hunyuan-patch", "HunyuanDiT patch embedding", "1x4x192x64", "1408x4x2x2", "1x1408x96x32", 2, 0, LISTS
    ),
    _case("whisper-stem", "Whisper stem, 1D", "16x80x3000", "512x80x3", "16x512x3000", 1, 1),
    _case("wav2vec2", "Wav2vec2 feature layer, 1D stride 2", "8x512x16000", "512x512x3", "8x512x7999", 2, 0),
    _case("c3d", "C3D, 3D 3x3x3", "8x64x16x56x56", "128x64x3x3x3", "8x128x16x56x56", 1, 1),
    _case(
        "opensora-vae",
        "OpenSoraPlan VAE, 3x3x3",
        "1x256x6x66x66",
        "256x256x3x3x3",
        "1x256x4x64x64",
        1,
        0,
        LISTS,
    ),
    _case(
        "opensora-down",
        "OpenSoraPlan VAE, 4x4x4 stride 2",
        "1x256x8x128x128",
        "256x256x4x4x4",
        "1x256x6x66x66",
        2,
        3,
        LISTS,
    ),
    _case("swin-unetr", "SwinUNETR downsampling", "8x384x6x6x6", "768x384x2x2x2", "8x768x3x3x3", 2, 0, LISTS),
    _case(
        "vivit-tubelet",
        "ViViT tubelets",
        "1x3x16x224x224",
        "768x3x2x16x16",
        "1x768x8x14x14",
        (2, 16, 16),
        0,
        LISTS,
    ),
    _case(
        "cvivit-dw3d",
        "CViViT, depthwise 3D",
        "4x512x8x34x34",
        "512x1x3x3x3",
        "4x512x6x32x32",
        1,
        0,
        LISTS,
        groups=512,
    ),
    _case(
        "dcgan-up",
        "DCGAN generator, transposed 4x4 stride 2",
        "16x256x8x8",
        "256x128x4x4",
        "16x128x16x16",
        2,
        1,
        transposed="true",
    ),
    _case(
        "tiny", "small enough to look at", "1x16x6x6", "16x16x3x3", "1x16x3x3", 2, 1, "made for a first look"
    ),
)
