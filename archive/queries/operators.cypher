// Gain of each operation of the agents: values of children minus those of their parents before them.
// Of a network that was evaluated several times, it is the mean value.
// Results of trainings that paused at a rung are left out.
// $study = null     Name of the study; null stands for all studies.
MATCH (s:Study) WHERE $study IS NULL OR s.name = $study
MATCH (s)-[:PROPOSED]->(p:Proposal)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.partial IS NULL AND NOT isNaN(e.value)
MATCH (p)-[:OF]->(child:Architecture)<-[m:MORPHED_INTO]-(parent:Architecture)
WITH s, child, parent, m.operations AS operations, avg(e.value) AS reached, min(p.number) AS first
MATCH (parent)<-[:OF]-(q:Proposal {study: s.name})-[:RESULTED_IN]->(was:Evaluation)
WHERE was.partial IS NULL AND NOT isNaN(was.value) AND q.number < first
WITH s.name AS study, s.direction AS direction, child, parent, operations, reached, avg(was.value) AS before
WITH study, operations, CASE WHEN direction = 'minimise' THEN before - reached ELSE reached - before END AS gain
UNWIND CASE WHEN size(operations) = 0 THEN ['?'] ELSE operations END AS operation
RETURN study, operation, count(gain) AS uses, avg(gain) AS mean_gain, max(gain) AS largest_gain,
       sum(CASE WHEN gain > 0 THEN 1 ELSE 0 END) AS improved
ORDER BY study, mean_gain DESC, operation
