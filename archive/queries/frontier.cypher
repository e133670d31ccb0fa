// Pareto frontier of value and cost, from the cheapest network to the best.
// Each objective under a protocol has a separate frontier, in the direction of its studies, or of the imported results
// if the task has no study; if studies disagree, larger is better. Imported results belong to the objective of the
// studies; they have none if studies have several.
// Results that do not meet the constraints of their study are left out, and those of trainings that paused at a rung.
// A result that reuses another one has no seconds of its own.
// $task    Name of the task.
// $protocol = null    Name of the training protocol; null stands for all protocols.
// $objective = null    Objective of the studies; null stands for all objectives.
// $cost = "params"    Cost to minimise: a property of networks (params, flops, mass), or a metric (latency_ms).
// $minimise = null (true or false)    Whether smaller values are better; null: as the task's studies have it.
MATCH (t:Task {name: $task})
WHERE $protocol IS NULL OR t.protocol = $protocol
OPTIONAL MATCH (s:Study)-[:ON]->(t)
WITH t, collect(DISTINCT s.objective) AS objectives, collect(DISTINCT s.direction + ' ' + s.objective) AS directions
MATCH (t)<-[:ON]-(e:Evaluation)-[:OF]->(a:Architecture)
WHERE e.partial IS NULL
OPTIONAL MATCH (e)<-[:RESULTED_IN]-(:Proposal)<-[:PROPOSED]-(s:Study)
WITH t, directions, e, a,
     coalesce(s.objective, CASE WHEN size(objectives) = 1 THEN objectives[0] END) AS objective,
     s.constrained IS NULL OR all(i IN range(0, size(s.constrained) - 1) WHERE
       CASE s.operators[i] WHEN '<=' THEN e['metric_' + s.constrained[i]] <= s.bounds[i]
                           WHEN '<' THEN e['metric_' + s.constrained[i]] < s.bounds[i]
                           WHEN '>=' THEN e['metric_' + s.constrained[i]] >= s.bounds[i]
                           ELSE e['metric_' + s.constrained[i]] > s.bounds[i] END) AS met
WHERE met AND ($objective IS NULL OR objective = $objective)
WITH t, e, a, objective,
     coalesce($minimise, CASE WHEN objective IS NULL THEN coalesce(t.direction, 'maximise') = 'minimise'
                              ELSE NOT 'maximise ' + objective IN directions END) AS minimise
WITH t.protocol AS protocol, objective, a.key AS architecture, e.value AS value,
     CASE WHEN minimise THEN -e.value ELSE e.value END AS score,
     coalesce(a[$cost], e['metric_' + $cost],
              CASE WHEN $cost <> 'seconds' OR e.answered_from IS NULL THEN e[$cost] END) AS cost
WHERE cost = cost AND NOT isNaN(value) // a cost of null or NaN equals nothing
WITH protocol, objective, architecture, value, score, cost
ORDER BY protocol, objective, cost, score DESC, architecture
WITH protocol, objective, collect([cost, score, value, architecture]) AS points
WITH protocol, objective, reduce(best = [], point IN points |
     CASE WHEN size(best) = 0 OR point[1] > best[size(best) - 1][1] THEN best + [point] ELSE best END) AS best
UNWIND best AS point
RETURN protocol, objective, point[3] AS architecture, point[2] AS value, point[0] AS cost
ORDER BY protocol, objective, cost
