"""Block formats: elements of one format that share a scale of another, a block at a time.

mxfp4 = get_block_format("mxfp4")                  # or one line, ELEMENT/SCALE/BLOCK: "int4/fp16/64", "int8/fp32/axis"
blocks = mxfp4.quantise(x, axis=-1)
blocks.codes, blocks.scales, blocks.values(), blocks.bytes
"""

from .block_format import BlockFormat, Blocks
from .catalogue import BLOCK_FORMATS, get_block_format

__all__ = ["BLOCK_FORMATS", "BlockFormat", "Blocks", "get_block_format"]
