// Gain of each operation of the agents: values of children minus those of their parents.
// Results of trainings that paused at a rung are left out.
// $study = null     Name of the study; null stands for all studies.
MATCH (s:Study) WHERE $study IS NULL OR s.name = $study
MATCH (s)-[:PROPOSED]->(p:Proposal)-[:RESULTED_IN]->(e:Evaluation)
WHERE e.partial IS NULL AND NOT isNaN(e.value)
MATCH (p)-[:OF]->(child:Architecture)<-[m:MORPHED_INTO]-(parent:Architecture)
MATCH (parent)<-[:OF]-(q:Proposal {study: s.name})-[:RESULTED_IN]->(was:Evaluation)
WHERE was.partial IS NULL AND NOT isNaN(was.value) AND q.number < p.number
WITH s.name AS study, m.operations AS operations,
     CASE WHEN s.direction = 'minimise' THEN was.value - e.value ELSE e.value - was.value END AS gain
UNWIND CASE WHEN size(operations) = 0 THEN ['?'] ELSE operations END AS operation
RETURN study, operation, count(gain) AS uses, avg(gain) AS mean_gain, max(gain) AS largest_gain,
       sum(CASE WHEN gain > 0 THEN 1 ELSE 0 END) AS improved
ORDER BY study, mean_gain DESC, operation
