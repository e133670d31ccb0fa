"""Metrics of an archive over HTTP: its queue and its trainers.

For Prometheus, and for autoscalers such as KEDA. Served without a running trainer; a trainer's own metrics are in
`archive.trainer.daemon.prometheus`.
"""
