"""Files of other tools, as their own packages write them."""
