"""Networks that the tests share."""
