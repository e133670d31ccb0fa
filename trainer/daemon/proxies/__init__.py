"""Zero-cost proxies that a daemon measures beside its trials: of the networks that it trains, and
of samples of spaces.

    ProposalClaimed ──> ProxyMeasurer (a thread) ── network ──> MeasurementProcess ── scores ──> the
    store

The daemon's loop never waits for either.
"""
