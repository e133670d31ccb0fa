// Pareto set of a study with several objectives, the best in the first objective first.
// A result is in it if no other result is at least as good in all objectives; of equal ones, the first.
// Results without a finite value of each objective are left out.
// Results that do not meet the constraints of the study are left out. Each evaluation is a separate result: replicates
// of a network are not averaged, in contrast to archive study best.
// $study    Name of the study.
MATCH (s:Study {name: $study})
WITH coalesce(s.objectives, [s.objective]) AS names, coalesce(s.directions, [s.direction]) AS directions
MATCH (s:Study {name: $study})-[:PROPOSED]->(p:Proposal)-[:RESULTED_IN]->(e:Evaluation)
WHERE p.state = 'COMPLETE'
WITH names, directions, p, e,
     s.constrained IS NULL OR all(i IN range(0, size(s.constrained) - 1) WHERE
       CASE s.operators[i] WHEN '<=' THEN e['metric_' + s.constrained[i]] <= s.bounds[i]
                           WHEN '<' THEN e['metric_' + s.constrained[i]] < s.bounds[i]
                           WHEN '>=' THEN e['metric_' + s.constrained[i]] >= s.bounds[i]
                           ELSE e['metric_' + s.constrained[i]] > s.bounds[i] END) AS met
WHERE met
WITH names, directions, p, range(0, size(names) - 1) AS every,
     [i IN range(0, size(names) - 1) | CASE WHEN i = 0 THEN e.value ELSE e['metric_' + names[i]] END] AS values
WHERE all(value IN values WHERE value IS NOT NULL AND value - value = 0.0)
WITH names, every, p.number AS number, p.architecture AS architecture, values,
     [i IN every | CASE WHEN directions[i] = 'minimise' THEN -values[i] ELSE values[i] END] AS scores
WITH names, every, collect([number, architecture, values, scores]) AS points
UNWIND points AS point
WITH names, every, points, point, point[3] AS scores
WHERE none(other IN points WHERE all(i IN every WHERE other[3][i] >= scores[i])
           AND (other[0] < point[0] OR any(i IN every WHERE other[3][i] > scores[i])))
RETURN point[0] AS number, point[1] AS architecture, names AS objectives, point[2] AS values
ORDER BY scores[0] DESC, number
