"""`python -m tests.benchmarks NAME …`."""

from tests.benchmarks.programs import main

main()
