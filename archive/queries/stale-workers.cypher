// Unresponsive workers that hold proposals: killed, hung or cut off.
// $seconds = 150    Time without a heartbeat after which a worker is stale.
MATCH (w:Worker)
WHERE timestamp() - w.heartbeat > 1000 * $seconds
MATCH (p:Proposal {state: 'RUNNING'})
WHERE p.worker = w.id
RETURN w.id AS worker, w.host AS host, w.device AS device, (timestamp() - w.heartbeat) / 1000.0 AS silent_seconds,
       p.id AS proposal, (p.lease_until - timestamp()) / 1000.0 AS lease_seconds
ORDER BY silent_seconds DESC, proposal
