"""Longer runs than a test has time for: the proofs (`python -m bench.prove`) and the benchmarks (`python -m bench`)."""
