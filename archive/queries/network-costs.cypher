// Costs of the networks of a study, the best first: parameters, operations, latency and peak memory.
// Latencies are comparable on equal hardware, with equal batches.
// $study         Name of the study.
// $hardware = null    Name of the device's hardware, as in the answer; null stands for all.
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)-[:RESULTED_IN]->(e:Evaluation)
WHERE $hardware IS NULL OR e.hardware = $hardware
RETURN p.number AS number, p.architecture AS architecture, e.value AS value, toInteger(e.metric_params) AS params,
       toInteger(e.metric_flops) AS flops, e.metric_latency_ms AS latency_ms, e.metric_latency_iqr_ms AS latency_iqr_ms,
       toInteger(e.metric_latency_batch) AS latency_batch,
       toInteger(e.metric_peak_memory_bytes) AS peak_memory_bytes, e.seconds AS seconds, e.device AS device,
       e.hardware AS hardware
ORDER BY CASE WHEN isNaN(value) THEN 1 ELSE 0 END,
         CASE WHEN s.direction = 'minimise' THEN -value ELSE value END DESC, number
