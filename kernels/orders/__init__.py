"""Whether an operator's results have the same bits whatever the batch, the tiling, the cores, the order, the product."""
