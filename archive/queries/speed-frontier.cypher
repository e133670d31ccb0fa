// Front of published results against the speed measured on a device, from the fastest network to the best.
// A network has its best result, and its largest speed on the device for the size of the test images. Results and
// speeds are of one network and one size; a network without both takes no part.
// $task    Name of the task with the results.
// $device    Name of the device, or a part of the protocol of its speeds: rtx4090, i7_12700h.
// $pretraining = true    Whether results with data before the task's own take part.
// $measured = "inference"    Task with the speeds: inference or training.
MATCH (t:Task {name: $task})<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL AND NOT isNaN(e.value) AND e.model IS NOT NULL AND ($pretraining OR e.pretraining IS NULL)
WITH a, split(t.protocol, '@')[1] AS size, e, CASE WHEN t.direction = 'minimise' THEN -e.value ELSE e.value END AS score
ORDER BY score DESC, e.model
WITH a, size, collect([score, e.value, e.model, e.family])[0] AS best
MATCH (a)<-[:OF]-(s:Evaluation)-[:ON]->(d:Task {name: $measured})
WHERE d.protocol CONTAINS $device AND split(d.protocol, '@')[1] = size AND s.metric_samples_per_second > 0
WITH a, size, best, max(s.metric_samples_per_second) AS speed, max(d.protocol) AS device
ORDER BY speed DESC, best[0] DESC, best[2]
WITH collect([speed, best[0], best[1], best[2], best[3], a.key, size, device, a.params]) AS points
WITH reduce(front = [], point IN points |
     CASE WHEN size(front) = 0 OR point[1] > front[size(front) - 1][1] THEN front + [point] ELSE front END) AS front
UNWIND front AS point
RETURN point[3] AS model, point[4] AS family, point[2] AS value, point[0] AS samples_per_second,
       1000.0 / point[0] AS latency_ms, point[8] AS params, point[6] AS size, point[7] AS device, point[5] AS architecture
ORDER BY samples_per_second DESC
